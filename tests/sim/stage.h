/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_STAGE_H
#define TESTS_SIM_STAGE_H

/* A real acceptor in a thread of its own, on a real socket of the loopback device, with real
 * handshake threads; the test plays the workers and the clients (control engines in the client
 * role). Everything happens in real time, so that tests wait for facts, never for durations. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "crypto/wrap.h"
#include "server/acceptor.h"
#include "server/control/session.h"
#include "workers/messages.h"

#define STAGE_WORKERS 2
#define STAGE_LOG_MAX 4096

/* What a mock worker was told; the test decides when it answers. */
struct stage_worker {
	unsigned adds, removes, installs, retires, moves, datagrams, stops, homes;
	struct peer *peers[512]; /* by peer-id, from PEER_ADD to the answer of PEER_REMOVE */
	uint32_t last_peer_id;
	uint8_t last_key_id;
	enum cipher last_cipher;
	bool is_holding; /* does not answer PEER_REMOVE */
	bool is_deaf;	 /* does not even look at its messages */
	struct message held[64];
	unsigned held_count;
};

struct stage {
	struct config config;
	struct wrap_keys *wrap;
	struct tls_context *tls;
	struct pki_name *server_name;
	struct mailboxes *mailboxes;
	struct route_table *routes;
	struct ip_pool *pool;
	struct slot_table slots;
	struct udp_group group;
	struct acceptor *acceptor;
	pthread_t thread;
	bool is_joined;
	int exit_code;
	struct stage_worker workers[STAGE_WORKERS + 1]; /* by thread index; 0 is unused */
	struct stage_client *clients;			/* all that are pumped */
};

/* Default configuration; the test may change it before stage_start. */
void stage_init(struct stage *s);
void stage_start(struct stage *s);
/* Waits for the acceptor's end, and takes its last messages. Returns its exit code. */
int stage_wait_end(struct stage *s);
/* SIGTERM to the process, then waits for the acceptor's end. Returns its exit code. */
int stage_stop(struct stage *s);
void stage_fini(struct stage *s);
/* Fixture of a test: *state becomes a stage with the default configuration. */
int stage_set_up(void **state);
int stage_tear_down(void **state);
/* A CRL that revokes nothing, or every client's certificate. */
void stage_write_crl(const char *path, bool is_revoking);

struct stage_client {
	struct stage *stage;
	struct stage_client *next;
	int fd;
	struct session_settings settings;
	struct wrap_keys *wrap;
	struct tls_context *tls;
	struct session *session; /* NULL: between two connections */
	bool is_through_worker;	 /* its packets reach the acceptor by MESSAGE_CONTROL from worker 1
				  */
	bool is_mute;		 /* sends nothing */
	bool has_key, is_closed;
	enum session_reason reason;
	unsigned keys;
	char push[1024];    /* PUSH_REPLY of the server, "" before */
	char command[1024]; /* the last other command */
	unsigned received;
};

/* A client named `name` that begins to connect. */
struct stage_client *stage_connect(struct stage *s, const char *name);
/* The same socket, a new session. */
void stage_reconnect(struct stage_client *c);
/* Forget it, without a word to the server. */
void stage_drop(struct stage_client *c);
/* A bare socket, connected to the acceptor; the caller closes it. */
int stage_socket(const struct stage *s);

/* Let things happen until `is_done(ctx)`; ends the test if that takes more than 10 s. */
void stage_until(struct stage *s, bool (*is_done)(void *ctx), void *ctx);
/* Let things happen for `ms`. */
void stage_pass(struct stage *s, unsigned ms);
bool stage_is_up(void *client); /* has keys and a PUSH_REPLY */
void stage_wait_up(struct stage_client *c);
/* Worker `w` answers what it held back. */
void stage_release(struct stage *s, unsigned w);
/* Worker `w` says something. */
void stage_say(struct stage *s, unsigned w, struct message m);
/* Peers that the mock workers hold. */
unsigned stage_peers(const struct stage *s);

#endif
