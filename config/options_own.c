/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of the directives that OpenVPN does not have. */
#include "config/options.h"

#include <string.h>

#define CPU_MAX		  1023 /* of the set that sched_setaffinity takes */
#define WORKER_MEMORY_MIN (1u << 20)
#define WORKER_MEMORY_MAX (1ull << 40)
#define RATE_MIN	  8000u /* bits/s: a packet would take seconds */
#define RATE_MAX	  400000000000u
#define BURST_MIN	  2048u /* one packet */
#define BURST_MAX	  (1u << 30)

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

/* "8M" -> 8 and 'M'; no suffix: 0. `suffixes` lists those allowed. False if it is no number. */
static bool parse_suffixed(const char *text, const char *suffixes, uint64_t max, uint64_t *n,
			   unsigned *power)
{
	char digits[24];
	size_t len = strlen(text);
	const char *suffix = len > 0 ? strchr(suffixes, text[len - 1]) : NULL;
	*power = suffix ? (unsigned)(suffix - suffixes + 1) : 0;
	if (suffix)
		len--;
	if (len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	return number_parse(digits, max, n);
}

/* "8M" -> bytes, at most `max`. */
static bool parse_size(const char *text, const char *suffixes, uint64_t max, uint64_t *out)
{
	unsigned power;
	if (!parse_suffixed(text, suffixes, max, out, &power) || *out > max >> (10 * power))
		return false;
	*out <<= 10 * power;
	return true;
}

void options_set_worker_memory(struct options *o, const struct lexer_line *l)
{
	uint64_t bytes;
	if (!parse_size(l->words[1], "KMG", WORKER_MEMORY_MAX, &bytes) || bytes < WORKER_MEMORY_MIN)
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

/* The words behind the directive as bits; false after a report. */
static bool take_offloads(struct options *o, const struct lexer_line *l, uint32_t *offloads)
{
	/* In the order of enum offload's bits. */
	static const char *const names[] = {"tso", "uso", "udp-gro", "udp-gso", NULL};
	for (unsigned i = 1; i < l->count; i++) {
		uint32_t bit = find_bit(l->words[i], names);
		if (bit == 0) {
			options_fault(o, l,
				      "'%s' is none of: tso, uso, udp-gro, udp-gso; auto and none "
				      "stand alone",
				      l->words[i]);
			return false;
		}
		*offloads |= bit;
	}
	return true;
}

void options_set_offload(struct options *o, const struct lexer_line *l)
{
	uint32_t offloads = 0;
	if (l->count == 2 && strcmp(l->words[1], "auto") == 0)
		o->config->offloads = OFFLOAD_ALL;
	else if (l->count == 2 && strcmp(l->words[1], "none") == 0)
		o->config->offloads = 0;
	else if (take_offloads(o, l, &offloads))
		o->config->offloads = offloads;
}

/* "20m" bits a second -> bytes a second; suffixes are decimal, as everywhere with rates. */
static bool take_rate(struct options *o, const struct lexer_line *l, unsigned arg, uint64_t *bytes)
{
	static const uint64_t units[] = {1, 1000, 1000000, 1000000000};
	uint64_t n;
	unsigned power;
	if (!parse_suffixed(l->words[arg], "kmg", RATE_MAX, &n, &power) ||
	    n > RATE_MAX / units[power] || (n > 0 && n * units[power] < RATE_MIN)) {
		options_fault(o, l,
			      "'%s' is no rate of 8k to 400g (bits a second, or with k, m or g), "
			      "nor 0 for no limit",
			      l->words[arg]);
		return false;
	}
	*bytes = n * units[power] / 8;
	return true;
}

void options_set_client_rate(struct options *o, const struct lexer_line *l)
{
	uint64_t up, down, burst = 0;
	if (!take_rate(o, l, 1, &up) || !take_rate(o, l, 2, &down))
		return;
	if (l->count > 3 &&
	    (!parse_size(l->words[3], "km", BURST_MAX, &burst) || burst < BURST_MIN)) {
		options_fault(o, l, "'%s' is no burst of 2k to 1024m (bytes, or with k or m)",
			      l->words[3]);
		return;
	}
	o->config->client_rate = (struct client_rate){up, down, (uint32_t)burst};
}
