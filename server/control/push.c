/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/addr.h"
#include "crypto/packet.h"

static const char push_command[] = "PUSH_REPLY";

/* An option that would reach this length opens the next message: room is left for what ends it. */
#define PUSH_SAFE_LEN (PUSH_MESSAGE_MAX - 84)

struct builder {
	struct push_reply reply;
	char text[PUSH_MESSAGE_MAX];
	size_t len;
	size_t total;
	int err;
};

static void append(struct builder *b, const char *option)
{
	int n = snprintf(b->text + b->len, sizeof(b->text) - b->len, ",%s", option);
	b->len += (size_t)n;
}

static void start_message(struct builder *b)
{
	b->len = sizeof(push_command) - 1;
	memcpy(b->text, push_command, sizeof(push_command));
}

static void end_message(struct builder *b)
{
	b->total += b->len + 1;
	if (b->total > PUSH_TOTAL_MAX) {
		b->err = -EMSGSIZE;
		return;
	}
	char **more = realloc(b->reply.messages, (b->reply.count + 1) * sizeof(*more));
	if (more)
		b->reply.messages = more;
	char *copy = more ? strdup(b->text) : NULL;
	if (!copy) {
		b->err = -ENOMEM;
		return;
	}
	b->reply.messages[b->reply.count++] = copy;
}

/* A comma would become two options on the wire. Bytes of UTF-8 are let through. */
static bool is_option_text(const char *option)
{
	for (const char *p = option; *p; p++)
		if (*p == ',' || (unsigned char)*p < 0x20 || *p == 0x7F)
			return false;
	return option[0] != '\0';
}

static void add(struct builder *b, const char *option)
{
	if (b->err)
		return;
	if (!is_option_text(option)) {
		b->err = -EINVAL;
		return;
	}
	size_t len = strlen(option);
	if (sizeof(push_command) - 1 + len >= PUSH_SAFE_LEN) {
		b->err = -EMSGSIZE;
		return;
	}
	if (b->len + len >= PUSH_SAFE_LEN) {
		append(b, "push-continuation 2");
		end_message(b);
		start_message(b);
	}
	append(b, option);
}

static void add_format(struct builder *b, const char *name, const char *value)
{
	char option[PUSH_MESSAGE_MAX];
	snprintf(option, sizeof(option), "%s %s", name, value);
	add(b, option);
}

static void add_number(struct builder *b, const char *name, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", value);
	add_format(b, name, text);
}

/* A client that knows cc-exit understands `protocol-flags`; others learn of the exporter by the
 * older option. */
static void add_flags(struct builder *b, const struct push_facts *f)
{
	if (f->has_tls_ekm && !f->has_cc_exit)
		add(b, "key-derivation tls-ekm");
	char flags[64];
	snprintf(flags, sizeof(flags), "protocol-flags%s%s%s", f->has_cc_exit ? " cc-exit" : "",
		 f->has_cc_exit && f->has_tls_ekm ? " tls-ekm" : "",
		 f->has_dyn_tls_crypt ? " dyn-tls-crypt" : "");
	if (f->has_cc_exit || f->has_dyn_tls_crypt)
		add(b, flags);
}

static void add_own(struct builder *b, const struct push_plan *plan, const struct push_facts *f)
{
	if (plan->ifconfig_ipv6)
		add_format(b, "ifconfig-ipv6", plan->ifconfig_ipv6);
	if (plan->ifconfig)
		add_format(b, "ifconfig", plan->ifconfig);
	if (f->has_peer_id)
		add_number(b, "peer-id", f->peer_id);
	if (f->is_cipher_pushed)
		add_format(b, "cipher", cipher_name(f->cipher));
	add_flags(b, f);
	if (f->tun_mtu)
		add_number(b, "tun-mtu", f->tun_mtu);
}

int push_build(const struct push_plan *plan, const struct push_facts *facts, struct push_reply *out)
{
	struct builder b = {0};
	start_message(&b);
	for (size_t i = 0; i < plan->option_count; i++)
		add(&b, plan->options[i]);
	add_own(&b, plan, facts);
	if (b.reply.count > 0)
		append(&b, "push-continuation 1");
	if (!b.err)
		end_message(&b);
	if (b.err) {
		push_reply_fini(&b.reply);
		return b.err;
	}
	*out = b.reply;
	return 0;
}

void push_reply_fini(struct push_reply *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->messages[i]);
	free(p->messages);
	*p = (struct push_reply){0};
}

/* --- the client's side --- */

void push_received_init(struct push_received *p)
{
	*p = (struct push_received){.peer_id = PEER_ID_NONE};
}

/* The value of "name value", or NULL if the option has another name. */
static const char *option_value(const char *option, const char *name)
{
	size_t len = strlen(name);
	return strncmp(option, name, len) == 0 && option[len] == ' ' ? option + len + 1 : NULL;
}

static void take_flags(struct push_received *p, char *flags)
{
	char *rest = NULL;
	for (char *f = strtok_r(flags, " ", &rest); f; f = strtok_r(NULL, " ", &rest)) {
		p->has_cc_exit |= strcmp(f, "cc-exit") == 0;
		p->has_tls_ekm |= strcmp(f, "tls-ekm") == 0;
		p->has_dyn_tls_crypt |= strcmp(f, "dyn-tls-crypt") == 0;
	}
}

static bool take_pushed(struct push_received *p, char *option)
{
	const char *value;
	uint64_t n;
	if ((value = option_value(option, "peer-id"))) {
		if (!number_parse(value, PEER_ID_NONE, &n))
			return strcmp(value, "-1") == 0;
		p->peer_id = (uint32_t)n;
	} else if ((value = option_value(option, "cipher"))) {
		if (strlen(value) >= sizeof(p->cipher))
			return false;
		snprintf(p->cipher, sizeof(p->cipher), "%s", value);
	} else if ((value = option_value(option, "key-derivation"))) {
		if (strcmp(value, "tls-ekm") != 0)
			return false;
		p->has_tls_ekm = true;
	} else if ((value = option_value(option, "push-continuation"))) {
		p->is_continued = strcmp(value, "2") == 0;
	} else if (option_value(option, "protocol-flags")) {
		take_flags(p, option + strlen("protocol-flags "));
	}
	return true;
}

bool push_received_add(struct push_received *p, const char *message)
{
	size_t len = sizeof(push_command) - 1;
	if (strncmp(message, push_command, len) != 0 || (message[len] && message[len] != ','))
		return false;
	p->is_continued = false;
	char text[2048 + 1];
	if (strlen(message) >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%s", message + len);
	char *rest = NULL;
	for (char *o = strtok_r(text, ",", &rest); o; o = strtok_r(NULL, ",", &rest))
		if (!take_pushed(p, o))
			return false;
	return true;
}
