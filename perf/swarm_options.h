/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SWARM_OPTIONS_H
#define PERF_SWARM_OPTIONS_H

/* swarm's command line. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "config/addr.h"
#include "crypto/aead.h"
#include "perf/inner.h"

#define SWARM_THREADS_MAX 64
#define SWARM_BURST_MAX	  64

/* Immutable once parsed; texts are those of the command line. */
struct swarm_options {
	const char *ca, *cert, *key, *tls_crypt; /* tls_crypt: NULL for none */
	union sockaddr_any server;
	unsigned clients, threads, at_once;
	bool is_connect_only, is_sending, is_receiving;
	double up_mbit;	 /* payload, all clients together; 0: flat out */
	unsigned fit_to; /* process-id; 0: the rate is not adapted */
	double seconds, warmup;
	unsigned size; /* payload of a packet */
	enum inner_protocol protocol;
	unsigned flows, burst; /* burst 0: as many as one send takes */
	uint32_t target_be32;  /* 0: the server's inner address */
	uint32_t ping_be32;    /* 0: no echo requests */
	unsigned ping_interval_ms, ping_size;
	unsigned rekey_s, keepalive_s; /* 0: never */
	bool is_rekeying_once, has_gso, has_gro;
	enum aead_choice aead;
	unsigned cpu_of; /* process-id; 0: none */
	bool is_json, is_quiet;
	/* As written, for the above: */
	const char *server_text, *aead_text;
	unsigned port;
	double up_mbit_total, up_mbit_each;
	bool is_tcp, is_udp;
};

void swarm_options_print(FILE *to);
/* Returns 0, or -EINVAL after having said on stderr what is wrong. *wants_help: nothing else is
 * wanted, and `out` is not complete. */
__attribute__((warn_unused_result)) int
swarm_options_parse(int argc, char **argv, struct swarm_options *out, bool *wants_help);

#endif
