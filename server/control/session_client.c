/* SPDX-License-Identifier: Apache-2.0 */
/* What only the TLS client does: ask for PUSH_REPLY, and do what it says. */

#include <stdio.h>
#include <string.h>

#include "server/control/session.h"
#include "server/control/session_state.h"

#define IV_PROTO_DEFAULT                                                                           \
	(IV_PROTO_DATA_V2 | IV_PROTO_REQUEST_PUSH | IV_PROTO_TLS_KEY_EXPORT |                      \
	 IV_PROTO_AUTH_PENDING_KW | IV_PROTO_DNS_OPTION | IV_PROTO_CC_EXIT_NOTIFY |                \
	 IV_PROTO_AUTH_FAIL_TEMP | IV_PROTO_DYN_TLS_CRYPT)

const char *session_client_peer_info(const struct session *s, char *buf, size_t len)
{
	if (s->settings->peer_info)
		return s->settings->peer_info;
	snprintf(buf, len,
		 "IV_VER=%s\nIV_PLAT=linux\nIV_TCPNL=1\nIV_MTU=1600\nIV_NCP=2\nIV_CIPHERS=%s\n"
		 "IV_PROTO=%d\n",
		 OPENVPN_COMPAT_VERSION, s->settings->data_ciphers, IV_PROTO_DEFAULT);
	return buf;
}

/* A cipher that was not offered is not taken. A server that pushes none uses what both have
 * configured. */
static enum cipher pushed_cipher(const struct session *s)
{
	const struct session_settings *settings = s->settings;
	const char *name = s->received.cipher;
	if (!name[0])
		return settings->cipher ? cipher_from_name(settings->cipher) : CIPHER_NONE;
	return cipher_list_has(settings->data_ciphers, name) ? cipher_from_name(name) : CIPHER_NONE;
}

static void apply_push(struct session *s, uint64_t now_ms)
{
	const struct push_received *p = &s->received;
	s->cipher = pushed_cipher(s);
	if (s->cipher == CIPHER_NONE) {
		session_say(s, LOG_WARN, "no cipher in common with the server (pushed: '%s')",
			    p->cipher);
		session_leave(s, SESSION_REASON_NO_CIPHER, now_ms);
		return;
	}
	s->peer_id = p->peer_id;
	s->uses_peer_id = p->peer_id != PEER_ID_NONE;
	s->flags = (p->has_tls_ekm ? SESSION_FLAG_TLS_EKM : 0u) |
		   (p->has_cc_exit ? SESSION_FLAG_CC_EXIT : 0u) |
		   (p->has_dyn_tls_crypt ? SESSION_FLAG_DYN_TLS_CRYPT : 0u);
	s->has_push = true;
	s->push_request_ms = NEVER;
}

static void take_push(struct session *s, const char *command, uint64_t now_ms)
{
	/* Later ones only refresh a token. */
	if (s->has_push)
		return;
	if (!push_received_add(&s->received, command)) {
		session_say(s, LOG_WARN, "malformed PUSH_REPLY");
		session_leave(s, SESSION_REASON_TLS_ERROR, now_ms);
	} else if (!s->received.is_continued) {
		apply_push(s, now_ms);
	}
}

void session_client_command(struct session *s, const char *command, uint64_t now_ms)
{
	session_tell(s, &(struct session_event){
				.kind = SESSION_EVENT_COMMAND,
				.key_id = s->primary->key_id,
				.text = command,
			});
	if (strncmp(command, "PUSH_REPLY", 10) == 0) {
		take_push(s, command, now_ms);
	} else if (strncmp(command, "AUTH_FAILED", 11) == 0) {
		/* The ack is all that the server still wants. */
		s->is_closed_when_flushed = true;
		session_leave(s, SESSION_REASON_AUTH_FAILED, now_ms + LEAVING_GRACE_MS);
	}
}

void session_client_advance(struct session *s, uint64_t now_ms)
{
	if (now_ms < s->push_request_ms || session_is_leaving(s))
		return;
	s->push_request_ms = now_ms + PUSH_REQUEST_AGAIN_MS;
	/* A full queue means that the last one still waits. */
	(void)!session_command(s, "PUSH_REQUEST");
}

uint64_t session_client_deadline(const struct session *s)
{
	return session_is_leaving(s) ? NEVER : s->push_request_ms;
}
