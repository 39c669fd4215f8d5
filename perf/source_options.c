/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/source_options.h"

#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/addr.h"
#include "perf/arguments.h"

#define AT(field)   offsetof(struct source_options, field)
#define TARGETS_MAX 65536

static const struct argument table[] = {
	{ARGUMENT_TEXT, "to", "FIRST[-LAST]", "inner IPv4 addresses, in turn", AT(to_text), 0, 0},
	{ARGUMENT_ON, "udp", NULL, "UDP datagrams to port 9 (default)", AT(is_udp), 0, 0},
	{ARGUMENT_ON, "tcp", NULL, "TCP super-packets to port 9, put into the device's queue",
	 AT(is_tcp), 0, 0},
	{ARGUMENT_TEXT, "dev", "NAME", "the server's tun device (tun0)", AT(device), 0, 0},
	{ARGUMENT_ADDRESS4, "from", "ADDR", "inner source address (the device's)", AT(from_be32), 0,
	 0},
	{ARGUMENT_NUMBER, "size", "BYTES", "payload of a packet (1400)", AT(size), INNER_STAMP_LEN,
	 INNER_SIZE_MAX},
	{ARGUMENT_AMOUNT, "mbit", "N", "payload, all together (0: flat out)", AT(mbit), 0, 1e6},
	{ARGUMENT_ON, "fit", NULL, "as fast as the device's queue loses at most 3 %",
	 AT(is_fitting), 0, 0},
	{ARGUMENT_NUMBER, "flows", "F", "to each address (1)", AT(flows), 1, SOURCE_FLOWS_MAX},
	{ARGUMENT_NUMBER, "burst", "N",
	 "packets to one address in a row (0: as many as one send takes)", AT(burst), 0,
	 SOURCE_BURST_MAX},
	{ARGUMENT_OFF, "no-gso", NULL, "single packets", AT(has_gso), 0, 0},
	{ARGUMENT_AMOUNT, "seconds", "S", "of measuring (5)", AT(seconds), 0, 86400},
	{ARGUMENT_AMOUNT, "warmup", "S", "data flows, but is not counted yet (0.5)", AT(warmup), 0,
	 3600},
	{ARGUMENT_NUMBER, "threads", "T", "(1)", AT(threads), 1, SOURCE_THREADS_MAX},
	{ARGUMENT_ON, "json", NULL, "the report as one JSON object, the last line of stdout",
	 AT(is_json), 0, 0},
	{ARGUMENT_ON, "quiet", NULL, "no progress on stderr", AT(is_quiet), 0, 0},
};
#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))

void source_options_print(FILE *to)
{
	fputs("usage: source --to FIRST[-LAST] [OPTION...]\n\n"
	      "Traffic from a server's side to the inner addresses of swarm's clients; runs in "
	      "the\n"
	      "network namespace of the server. What it sends carries sequence numbers, by which\n"
	      "swarm counts losses.\n\n",
	      to);
	arguments_print(table, TABLE_COUNT, to);
	fputs("\nExit code: 0, 2 could not start, 64 wrong usage.\n", to);
}

static int refuse(const char *why)
{
	fprintf(stderr, "source: %s\n", why);
	return -EINVAL;
}

static bool address_parse(const char *text, uint32_t *host)
{
	struct ip_addr a;

	if (!ip_addr_parse(text, &a) || a.family != 4)
		return false;
	*host = ip_addr_to_host32(&a);
	return true;
}

static int resolve_targets(struct source_options *o)
{
	char first[IP_ADDR_TEXT_MAX];
	const char *dash = strchr(o->to_text, '-');
	size_t len = dash ? (size_t)(dash - o->to_text) : strlen(o->to_text);
	uint32_t last;

	if (len >= sizeof(first))
		return refuse("--to wants IPv4 addresses: FIRST or FIRST-LAST");
	memcpy(first, o->to_text, len);
	first[len] = '\0';
	if (!address_parse(first, &o->first) || !address_parse(dash ? dash + 1 : first, &last))
		return refuse("--to wants IPv4 addresses: FIRST or FIRST-LAST");
	if (last < o->first || last - o->first >= TARGETS_MAX)
		return refuse("--to: from 1 to 65536 addresses, the first one first");
	o->count = last - o->first + 1;
	return 0;
}

static int address_of(const char *device, uint32_t *be32)
{
	struct ifreq r = {.ifr_addr.sa_family = AF_INET};
	struct sockaddr_in in;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strncpy(r.ifr_name, device, sizeof(r.ifr_name) - 1);
	int ret = fd < 0 ? -1 : ioctl(fd, SIOCGIFADDR, &r);
	if (fd >= 0)
		close(fd);
	if (ret != 0)
		return refuse("--dev has no IPv4 address: name another, or use --from");
	memcpy(&in, &r.ifr_addr, sizeof(in));
	*be32 = in.sin_addr.s_addr;
	return 0;
}

static int resolve_device(struct source_options *o)
{
	o->device_index = (int)if_nametoindex(o->device);
	if (o->device_index == 0)
		return refuse("--dev: there is no such device in this network namespace");
	return o->from_be32 ? 0 : address_of(o->device, &o->from_be32);
}

static int resolve(struct source_options *o)
{
	if (!o->to_text)
		return refuse("--to is needed");
	if (o->is_tcp && o->is_udp)
		return refuse("--tcp and --udp exclude each other");
	if (o->is_fitting && o->mbit > 0)
		return refuse("--fit finds the rate itself: leave --mbit out");
	o->protocol = o->is_tcp ? INNER_TCP : INNER_UDP;
	int err = resolve_targets(o);
	if (!err)
		err = resolve_device(o);
	if (!err && o->threads > o->count)
		o->threads = o->count;
	return err;
}

int source_options_parse(int argc, char **argv, struct source_options *out, bool *wants_help)
{
	*out = (struct source_options){
		.device = "tun0",
		.size = 1400,
		.flows = 1,
		.threads = 1,
		.seconds = 5,
		.warmup = 0.5,
		.has_gso = true,
	};
	int err = arguments_parse(table, TABLE_COUNT, argc, argv, out, wants_help);
	return err || *wants_help ? err : resolve(out);
}
