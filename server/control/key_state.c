/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/key_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

int key_state_new(const struct key_state_start *start, struct key_state **out)
{
	struct key_state *k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->key_id = start->key_id;
	k->start_ms = start->now_ms;
	k->renegotiate_ms = UINT64_MAX;
	reliable_init(&k->reliable, start->first_send, start->first_recv, start->timeout_ms);
	*out = k;
	return 0;
}

void key_state_forget_password(struct key_state *k)
{
	if (k->password)
		secret_wipe(k->password, strlen(k->password));
	free(k->password);
	k->password = NULL;
}

void key_state_forget_secrets(struct key_state *k)
{
	secret_free(k->secrets, sizeof(*k->secrets));
	k->secrets = NULL;
}

void key_state_free(struct key_state *k)
{
	if (!k)
		return;
	reliable_fini(&k->reliable);
	tls_free(k->tls);
	key_state_forget_secrets(k);
	key_state_forget_password(k);
	free(k->username);
	free(k);
}

bool key_state_is_open(const struct key_state *k)
{
	return k->tls && !k->is_failed && k->has_sent && k->has_got;
}

int key_state_drain(struct key_state *k, size_t payload_max)
{
	uint8_t piece[RELIABLE_PAYLOAD_MAX];
	while (k->tls && tls_output_left(k->tls) > 0 && reliable_can_queue(&k->reliable)) {
		size_t len = tls_output(k->tls, piece, payload_max);
		int err =
			reliable_queue(&k->reliable, OPCODE_CONTROL_V1, (struct view){piece, len});
		if (err)
			return err;
	}
	return 0;
}

bool key_state_is_flushed(const struct key_state *k)
{
	return reliable_is_all_acked(&k->reliable) && (!k->tls || tls_output_left(k->tls) == 0);
}

void key_state_fail(struct key_state *k, size_t payload_max)
{
	/* Without memory the alert is lost; the peer's hand-window ends it then. */
	int err = key_state_drain(k, payload_max);
	(void)err;
	reliable_finish(&k->reliable);
	tls_free(k->tls);
	k->tls = NULL;
	k->is_failed = true;
	key_state_forget_secrets(k);
	key_state_forget_password(k);
}
