/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of the directives that OpenVPN does not have. */
#include "config/options.h"

#include <string.h>

#define CPU_MAX		  1023 /* of the set that sched_setaffinity takes */
#define WORKER_MEMORY_MIN (1u << 20)
#define WORKER_MEMORY_MAX (1ull << 40)

/* A count, or 0 for "auto". */
static void set_count(struct options *o, const struct lexer_line *l, uint32_t *field)
{
	uint64_t n = 0;
	if (strcmp(l->words[1], "auto") != 0 && !number_parse(l->words[1], WORKERS_MAX, &n))
		n = 0;
	else if (strcmp(l->words[1], "auto") == 0 || n > 0) {
		*field = (uint32_t)n;
		return;
	}
	options_fault(o, l, "'%s' is neither auto nor a number from 1 to %d", l->words[1],
		      WORKERS_MAX);
}

void options_set_workers(struct options *o, const struct lexer_line *l)
{
	set_count(o, l, &o->config->workers);
}

void options_set_handshake_threads(struct options *o, const struct lexer_line *l)
{
	set_count(o, l, &o->config->handshake_threads);
}

void options_set_io_engine(struct options *o, const struct lexer_line *l)
{
	/* In the order of enum io_engine_choice. */
	static const char *const words[] = {"auto", "uring", "epoll", NULL};
	int i = options_choice(o, l, 1, words);
	if (i >= 0)
		o->config->io_engine = (enum io_engine_choice)i;
}

void options_set_aead_engine(struct options *o, const struct lexer_line *l)
{
	/* In the order of enum aead_choice. */
	static const char *const words[] = {"auto", "openssl", "ipsec-mb", NULL};
	int i = options_choice(o, l, 1, words);
	if (i >= 0)
		o->config->aead_engine = (enum aead_choice)i;
}

/* "3" or "2-5". */
static bool parse_range(const char *text, uint64_t *first, uint64_t *last)
{
	char low[8];
	const char *dash = strchr(text, '-');
	size_t len = dash ? (size_t)(dash - text) : strlen(text);
	if (len >= sizeof(low))
		return false;
	memcpy(low, text, len);
	low[len] = '\0';
	if (!number_parse(low, CPU_MAX, first))
		return false;
	*last = *first;
	return !dash || (number_parse(dash + 1, CPU_MAX, last) && *last >= *first);
}

static bool add_cpus(int *cpus, size_t *count, uint64_t first, uint64_t last)
{
	for (uint64_t cpu = first; cpu <= last; cpu++) {
		for (size_t i = 0; i < *count; i++)
			if (cpus[i] == (int)cpu)
				return false;
		if (*count == WORKERS_MAX)
			return false;
		cpus[(*count)++] = (int)cpu;
	}
	return true;
}

void options_set_worker_cpus(struct options *o, const struct lexer_line *l)
{
	int *cpus = arena_alloc(o->config->arena, WORKERS_MAX * sizeof(*cpus));
	char *list = arena_strdup(o->config->arena, l->words[1]);
	size_t count = 0;
	char *rest = NULL;
	uint64_t first, last;
	if (!cpus || !list)
		return;
	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (!parse_range(word, &first, &last) || !add_cpus(cpus, &count, first, last)) {
			count = 0;
			break;
		}
	}
	if (count == 0) {
		options_fault(o, l, "'%s' is no list of up to %d different CPUs, such as 0,2-5",
			      l->words[1], WORKERS_MAX);
		return;
	}
	o->config->worker_cpus = cpus;
	o->config->worker_cpu_count = count;
}

/* "8M" -> bytes. */
static bool parse_size(const char *text, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	char digits[24];
	size_t len = strlen(text);
	const char *suffix = len > 0 ? strchr(suffixes, text[len - 1]) : NULL;
	unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
	if (suffix)
		len--;
	if (len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (!number_parse(digits, WORKER_MEMORY_MAX >> shift, out))
		return false;
	*out <<= shift;
	return true;
}

void options_set_worker_memory(struct options *o, const struct lexer_line *l)
{
	uint64_t bytes;
	if (!parse_size(l->words[1], &bytes) || bytes < WORKER_MEMORY_MIN)
		options_fault(o, l, "'%s' is no size of at least 1M (bytes, or with K, M or G)",
			      l->words[1]);
	else
		o->config->worker_memory = bytes;
}

void options_set_metrics(struct options *o, const struct lexer_line *l)
{
	struct ip_addr a;
	uint64_t port;
	if (!ip_addr_parse(l->words[1], &a)) {
		options_fault(o, l, "'%s' is no address", l->words[1]);
		return;
	}
	if (!options_number(o, l, 2, 1, UINT16_MAX, &port))
		return;
	o->config->metrics_host = options_text(o, l, 1);
	o->config->metrics_port = (uint16_t)port;
}

/* Bit of `word` in `names`, whose order is that of the bits; 0: it is none of them. */
static uint32_t find_bit(const char *word, const char *const *names)
{
	for (unsigned i = 0; names[i]; i++)
		if (strcmp(word, names[i]) == 0)
			return 1u << i;
	return 0;
}

void options_set_disable_feature(struct options *o, const struct lexer_line *l)
{
	/* In the order of enum feature's bits. */
	static const char *const names[] = {"uring",
					    "uring-recv-multishot",
					    "uring-read-multishot",
					    "recvmmsg",
					    "steering-cbpf",
					    "huge-pages",
					    "tun-tso",
					    "tun-uso",
					    "udp-gro",
					    "udp-gso",
					    "steering-ebpf",
					    NULL};
	char *list = arena_strdup(o->config->arena, l->words[1]);
	char *rest = NULL;
	uint32_t features = 0;
	if (!list)
		return;
	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		uint32_t bit = find_bit(word, names);
		if (bit == 0) {
			options_fault(o, l,
				      "'%s' is none of: uring, uring-recv-multishot, "
				      "uring-read-multishot, recvmmsg, steering-cbpf, huge-pages, "
				      "tun-tso, tun-uso, udp-gro, udp-gso, steering-ebpf",
				      word);
			return;
		}
		features |= bit;
	}
	o->config->disabled_features |= features;
}
