/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_KEY_STATE_H
#define SERVER_CONTROL_KEY_STATE_H

/* One key generation of a session on its way from reset to data keys: its own reliable stream, TLS
 * handshake and key exchange. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/prf.h"
#include "server/control/reliable.h"
#include "server/control/tls.h"

enum key_verdict { KEY_VERDICT_NONE, KEY_VERDICT_ALLOWED, KEY_VERDICT_REFUSED };

struct key_state {
	uint8_t key_id;
	bool has_sent, has_got; /* the key exchange message of our side, of theirs */
	bool is_active;		/* both, and all that we sent is acknowledged */
	bool is_handed_out;	/* data keys are with the owner */
	bool is_generated;	/* and both sides are known to have them */
	bool is_failed;		/* TLS is no more; what is queued goes once */
	enum key_verdict verdict;
	uint64_t start_ms;
	uint64_t renegotiate_ms; /* when time is up; UINT64_MAX: never */
	struct reliable reliable;
	struct tls *tls;	   /* NULL before the first TLS byte and after a failure */
	struct prf_input *secrets; /* from the exchange to the data keys; secret_alloc */
	char *username, *password; /* of the peer's exchange, sanitised; NULL before */
};

struct key_state_start {
	uint8_t key_id;
	uint32_t first_send, first_recv; /* 1 where the resets are behind us, else 0 */
	uint64_t now_ms, timeout_ms;
};
/* Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int key_state_new(const struct key_state_start *start,
						      struct key_state **out);
/* Wipes and frees everything; NULL is accepted. */
void key_state_free(struct key_state *k);

/* Key exchange done both ways and TLS up: commands may pass. */
bool key_state_is_open(const struct key_state *k);
/* Cut TLS output into messages of at most `payload_max` bytes while the window has room. Returns 0
 * or -ENOMEM. */
__attribute__((warn_unused_result)) int key_state_drain(struct key_state *k, size_t payload_max);
/* Nothing of ours waits for room or for an ack. */
bool key_state_is_flushed(const struct key_state *k);
/* TLS failed: what it still has to say (an alert) goes out once, then nothing. */
void key_state_fail(struct key_state *k, size_t payload_max);
/* The verdict is there: the password is needed no more. */
void key_state_forget_password(struct key_state *k);
void key_state_forget_secrets(struct key_state *k);

#endif
