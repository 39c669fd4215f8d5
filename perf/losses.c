/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/losses.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LEN 64
#define LINE_LEN 1024
/* Of /proc/net/dev: behind the 8 columns of receiving. */
#define DEV_TX_PACKETS 9
#define DEV_TX_DROP    11

static FILE *open_of(pid_t pid, const char *name)
{
	char path[PATH_LEN];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	else
		snprintf(path, sizeof(path), "/proc/thread-self/net/%s", name);
	return fopen(path, "re");
}

/* Word number `n` of a line, from 0, as a number; 0 if there are fewer. The line is taken apart. */
static uint64_t number_at(char *line, unsigned n)
{
	char *rest = line, *w;

	while ((w = strtok_r(rest, " \n", &rest)))
		if (n-- == 0)
			return strtoull(w, NULL, 10);
	return 0;
}

static unsigned word_number(char *line, const char *name)
{
	char *rest = line, *w;

	for (unsigned n = 0; (w = strtok_r(rest, " \n", &rest)); n++)
		if (strcmp(w, name) == 0)
			return n;
	return 0;
}

/* /proc/net/snmp: a line of names, then one of values, both beginning with "Udp:". */
static struct losses sockets4(pid_t pid)
{
	char line[LINE_LEN], copy[LINE_LEN];
	unsigned lost = 0, passed = 0;
	struct losses out = {0};
	FILE *f = open_of(pid, "snmp");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "Udp: ", 5) != 0)
			continue;
		memcpy(copy, line, sizeof(copy));
		if (lost) {
			out = (struct losses){number_at(line, lost), number_at(copy, passed)};
			break;
		}
		lost = word_number(line, "RcvbufErrors");
		passed = word_number(copy, "InDatagrams");
	}
	if (f)
		(void)fclose(f);
	return out;
}

static bool take_named(const char *line, const char *name, uint64_t *to)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len) != 0 || (line[len] != ' ' && line[len] != '\t'))
		return false;
	*to = strtoull(line + len, NULL, 10);
	return true;
}

/* /proc/net/snmp6: a name and its value a line. */
static struct losses sockets6(pid_t pid)
{
	char line[LINE_LEN];
	struct losses out = {0};
	FILE *f = open_of(pid, "snmp6");

	while (f && fgets(line, sizeof(line), f))
		if (!take_named(line, "Udp6RcvbufErrors", &out.lost))
			(void)take_named(line, "Udp6InDatagrams", &out.passed);
	if (f)
		(void)fclose(f);
	return out;
}

struct losses losses_of_sockets(pid_t pid)
{
	struct losses a = sockets4(pid), b = sockets6(pid);

	return (struct losses){a.lost + b.lost, a.passed + b.passed};
}

struct losses losses_of_device(const char *name)
{
	char line[LINE_LEN], copy[LINE_LEN];
	struct losses out = {0};
	FILE *f = open_of(0, "dev");

	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		if (strcmp(line + strspn(line, " "), name) != 0)
			continue;
		snprintf(copy, sizeof(copy), "%s", colon + 1);
		out.lost = number_at(colon + 1, DEV_TX_DROP);
		out.passed = number_at(copy, DEV_TX_PACKETS);
	}
	if (f)
		(void)fclose(f);
	return out;
}
