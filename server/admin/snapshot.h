/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_SNAPSHOT_H
#define SERVER_ADMIN_SNAPSHOT_H

/* server/admin/: what operators see. This module: one immutable picture of the control side, made
 * by the acceptor (every second while somebody looks, or for a status file), read by the status
 * writer and the observer. Times: unix seconds unless a name says otherwise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/addr.h"
#include "config/config.h"

enum peer_state {
	PEER_STATE_HANDSHAKING,
	PEER_STATE_AUTHENTICATING,
	PEER_STATE_ESTABLISHED,
	PEER_STATE_CLOSING,
	PEER_STATE_COUNT
};

struct snapshot_client {
	char common_name[64];		   /* "UNDEF" before it is known */
	char username[64];		   /* "UNDEF" if none */
	char real_addr[ENDPOINT_TEXT_MAX]; /* "192.0.2.7:40000" */
	char virtual4[IP_ADDR_TEXT_MAX];   /* "" if none */
	char virtual6[IP_ADDR_TEXT_MAX];
	uint64_t received_bytes, sent_bytes;
	int64_t connected_s;
	int64_t last_ref_s; /* last authenticated packet */
	uint64_t client_id;
	uint32_t peer_id;
	const char *cipher; /* static text; "" before it is known */
	unsigned worker;    /* 1..N; 0: none yet */
	enum peer_state state;
};

/* X(name): counters of the acceptor, process-wide, since start. */
#define CONTROL_COUNTERS(X)                                                                        \
	X(connects)                                                                                \
	X(disconnect_exit_notify)                                                                  \
	X(disconnect_ping_restart)                                                                 \
	X(disconnect_auth_failed)                                                                  \
	X(disconnect_tls_error)                                                                    \
	X(disconnect_replaced)                                                                     \
	X(disconnect_shutdown)                                                                     \
	X(floats_accepted)                                                                         \
	X(floats_rejected)                                                                         \
	X(handshakes_started)                                                                      \
	X(handshakes_ok)                                                                           \
	X(handshakes_tls_error)                                                                    \
	X(handshakes_cert_rejected)                                                                \
	X(handshakes_auth_failed)                                                                  \
	X(handshakes_timeout)                                                                      \
	X(handshakes_pool_empty)                                                                   \
	X(handshakes_rejected_limit)                                                               \
	X(renegotiations_local_ok)                                                                 \
	X(renegotiations_local_failed)                                                             \
	X(renegotiations_peer_ok)                                                                  \
	X(renegotiations_peer_failed)                                                              \
	X(cookies_issued)                                                                          \
	X(cookies_accepted)                                                                        \
	X(cookies_rejected)                                                                        \
	X(pool4_exhausted)                                                                         \
	X(pool6_exhausted)                                                                         \
	X(tun_steering_errors)

#define CONTROL_OPCODES	  16
#define HANDSHAKE_BUCKETS 13 /* le .005 .01 .025 .05 .1 .25 .5 1 2.5 5 10 30 +Inf */

struct control_counters {
#define X(f) uint64_t f;
	CONTROL_COUNTERS(X)
#undef X
	uint64_t control_received[CONTROL_OPCODES]; /* by opcode */
	uint64_t control_sent[CONTROL_OPCODES];
	uint64_t control_retransmits;
	uint64_t drops[64]; /* by enum drop: control packets dropped by the acceptor */
	uint64_t handshake_buckets[HANDSHAKE_BUCKETS]; /* duration from cookie to keys, not
							  cumulative */
	uint64_t handshake_sum_us, handshake_count;
};

struct snapshot {
	int64_t made_s;
	struct control_counters control;
	uint64_t states[PEER_STATE_COUNT];
	uint32_t max_clients;
	uint32_t pool4_size, pool4_used, pool6_size, pool6_used;
	uint32_t routes4, routes6;
	/* By thread: datagrams for which a socket's receive buffer had no room. */
	uint64_t socket_drops[WORKERS_MAX + 1];
	uint64_t tun_queue_drops; /* packets for which the tun's queues had no room */
	bool is_tun_steered;	  /* by the eBPF program */
	int64_t cert_not_after_s, crl_next_update_s; /* 0: none */
	int64_t reloaded_s;    /* when certificates, key and CRL in use were read */
	bool is_reload_failed; /* the last attempt on a signal left them as they were */
	size_t client_count;
	struct snapshot_client clients[]; /* client_count */
};

#endif
