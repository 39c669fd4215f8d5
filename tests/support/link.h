/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_LINK_H
#define TESTS_SUPPORT_LINK_H

/* Two control engines, server and client, joined by a link that loses, repeats and reorders, under
 * a fake clock. Everything is repeatable from one seed but the bytes of TLS itself. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/control/negotiate.h"
#include "server/control/session.h"
#include "server/control/tls.h"

enum { LINK_SERVER, LINK_CLIENT };

/* How a pair is set up; zero is a sensible default for each field. */
struct link_setup {
	enum wrap_mode wrap;
	int tls_version;			   /* 12 or 13; 0: whatever they agree on */
	const char *peer_info;			   /* of the client; NULL: its default */
	const char *data_ciphers, *client_ciphers; /* NULL: the three defaults */
	uint32_t hand_window_s, tran_window_s;	   /* 0: 60, 3600 */
	uint32_t server_reneg_s, client_reneg_s;   /* 0: never */
	const char *const *push;
	size_t push_count;
	const char *username, *password;
	unsigned loss, repeat, reorder; /* percent */
	uint32_t max_packet_size;	/* 0: 1250 */
	uint32_t seed;
	bool is_held;	 /* the owner of the server gives no verdict by itself */
	bool is_refused; /* it refuses */
	const char *refusal;
};

/* What one end has told so far. */
struct link_end {
	struct session *session; /* server: NULL until the client echoed its session-id */
	struct session_settings settings;
	struct tls_context *tls;
	unsigned counts[SESSION_EVENT_CLOSED + 1];
	struct data_key_material keys[8]; /* by key-id, the newest */
	bool has_key[8];
	uint64_t seal_from_ms[8];
	uint8_t last_key_id, last_retired;
	enum session_reason closed_reason, renegotiation_reason;
	bool is_closed, was_initiator;
	char command[COMMAND_MAX]; /* the last one */
	char log[16384];	   /* all lines, each with its newline */
	unsigned sent;		   /* datagrams */
};

struct link_datagram {
	uint64_t at_ms;
	int to;
	size_t len;
	uint8_t bytes[CONTROL_PACKET_MAX];
};
#define LINK_FLYING_MAX 256

struct link {
	struct link_setup setup;
	struct link_end ends[2];
	struct wrap_keys *wraps[2];
	struct static_key wrap_key;
	uint64_t now_ms;
	uint32_t rng;
	bool is_cut; /* nothing arrives any more */
	struct link_datagram *flying;
	size_t flying_count;
	size_t largest;							   /* datagram seen */
	void (*on_datagram)(struct link *l, int to, struct view datagram); /* before delivery */
	enum drop last_drop;
};

/* The certificates that all links use: made once a process. */
void link_pki_init(void);
void link_pki_fini(void);
const char *link_ca_pem(void);
/* Another client's certificate of that CA; the caller frees it. */
struct pki_name *link_make_client(const char *cn);

struct link *link_new(const struct link_setup *setup);
void link_free(struct link *l);
/* Let time pass until `done` is true (NULL: never), both ends are quiet for good, or `ms` have
 * passed. Returns whether `done` held. */
bool link_run(struct link *l, uint64_t ms, bool (*done)(const struct link *l));
/* Make the server's session now, without waiting for the client's echo. */
void link_accept(struct link *l);
uint32_t link_wall_s(const struct link *l);
/* Both ends hold the same data keys, crossed, for `key_id`. */
bool link_keys_match(const struct link *l, uint8_t key_id);
/* Both have keys and the client was pushed to. */
bool link_is_up(const struct link *l);
uint32_t link_random(struct link *l);

#endif
