/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/losses.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LEN    64
#define LINE_LEN    1024
#define DEV_TX_DROP 11 /* of /proc/net/dev: behind the 8 columns of receiving */

static FILE *open_of(pid_t pid, const char *name)
{
	char path[PATH_LEN];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	else
		snprintf(path, sizeof(path), "/proc/thread-self/net/%s", name);
	return fopen(path, "re");
}

/* Word number `n` of a line, from 0; NULL if there are fewer. */
static const char *word(char *line, unsigned n)
{
	char *rest = line, *w;

	while ((w = strtok_r(rest, " \n", &rest)))
		if (n-- == 0)
			return w;
	return NULL;
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
static uint64_t overflows4(pid_t pid)
{
	char line[LINE_LEN];
	unsigned n = 0;
	uint64_t out = 0;
	FILE *f = open_of(pid, "snmp");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "Udp: ", 5) != 0)
			continue;
		const char *value = n ? word(line, n) : NULL;
		if (value)
			out = strtoull(value, NULL, 10);
		else
			n = word_number(line, "RcvbufErrors");
	}
	if (f)
		(void)fclose(f);
	return out;
}

/* /proc/net/snmp6: a name and its value a line. */
static uint64_t overflows6(pid_t pid)
{
	static const char name[] = "Udp6RcvbufErrors";
	char line[LINE_LEN];
	uint64_t out = 0;
	FILE *f = open_of(pid, "snmp6");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			out = strtoull(line + sizeof(name) - 1, NULL, 10);
	if (f)
		(void)fclose(f);
	return out;
}

uint64_t losses_of_sockets(pid_t pid)
{
	return overflows4(pid) + overflows6(pid);
}

uint64_t losses_of_device(const char *name)
{
	char line[LINE_LEN];
	uint64_t out = 0;
	FILE *f = open_of(0, "dev");

	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		if (strcmp(line + strspn(line, " "), name) != 0)
			continue;
		const char *value = word(colon + 1, DEV_TX_DROP);
		out = value ? strtoull(value, NULL, 10) : 0;
	}
	if (f)
		(void)fclose(f);
	return out;
}
