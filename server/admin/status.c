/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/admin/rewrite.h"

struct status_file {
	int fd;
};

#define TIME_TEXT_MAX 40

/* Local time, as stock prints it in every version but the oldest. */
static const char *time_print(int64_t unix_s, char buf[TIME_TEXT_MAX])
{
	time_t t = (time_t)unix_s;
	struct tm tm;
	if (localtime_r(&t, &tm) == NULL ||
	    strftime(buf, TIME_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		buf[0] = '\0';
	return buf;
}

static void client_print1(FILE *f, const struct snapshot_client *c)
{
	char since[TIME_TEXT_MAX];
	fprintf(f, "%s,%s,%" PRIu64 ",%" PRIu64 ",%s\n", c->common_name, c->real_addr,
		c->received_bytes, c->sent_bytes, time_print(c->connected_s, since));
}

static void route_print1(FILE *f, const struct snapshot_client *c, const char *virtual_addr)
{
	char seen[TIME_TEXT_MAX];
	if (virtual_addr[0] != '\0')
		fprintf(f, "%s,%s,%s,%s\n", virtual_addr, c->common_name, c->real_addr,
			time_print(c->last_ref_s, seen));
}

static void text_print1(FILE *f, const struct snapshot *s)
{
	char now[TIME_TEXT_MAX];
	fprintf(f, "OpenVPN CLIENT LIST\nUpdated,%s\n", time_print(s->made_s, now));
	fputs("Common Name,Real Address,Bytes Received,Bytes Sent,Connected Since\n", f);
	for (size_t i = 0; i < s->client_count; i++)
		client_print1(f, &s->clients[i]);
	fputs("ROUTING TABLE\nVirtual Address,Common Name,Real Address,Last Ref\n", f);
	for (size_t i = 0; i < s->client_count; i++) {
		route_print1(f, &s->clients[i], s->clients[i].virtual4);
		route_print1(f, &s->clients[i], s->clients[i].virtual6);
	}
	fputs("GLOBAL STATS\nMax bcast/mcast queue length,0\nEND\n", f);
}

/* Write `text`, in which '|' stands for the separator of the version. */
static void header_print(FILE *f, char sep, const char *text)
{
	for (const char *p = text; *p != '\0'; p++)
		fputc(*p == '|' ? sep : *p, f);
}

static void client_print(FILE *f, char sep, const struct snapshot_client *c)
{
	char since[TIME_TEXT_MAX];
	const char *fields[] = {c->common_name, c->real_addr, c->virtual4, c->virtual6};
	fputs("CLIENT_LIST", f);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fprintf(f, "%c%s", sep, fields[i]);
	fprintf(f, "%c%" PRIu64 "%c%" PRIu64, sep, c->received_bytes, sep, c->sent_bytes);
	fprintf(f, "%c%s%c%" PRId64, sep, time_print(c->connected_s, since), sep, c->connected_s);
	fprintf(f, "%c%s%c%" PRIu64 "%c%" PRIu32 "%c%s\n", sep, c->username, sep, c->client_id, sep,
		c->peer_id, sep, c->cipher);
}

static void route_print(FILE *f, char sep, const struct snapshot_client *c,
			const char *virtual_addr)
{
	char seen[TIME_TEXT_MAX];
	if (virtual_addr[0] == '\0')
		return;
	fprintf(f, "ROUTING_TABLE%c%s%c%s%c%s", sep, virtual_addr, sep, c->common_name, sep,
		c->real_addr);
	fprintf(f, "%c%s%c%" PRId64 "\n", sep, time_print(c->last_ref_s, seen), sep, c->last_ref_s);
}

static void text_print(FILE *f, char sep, const struct snapshot *s)
{
	char now[TIME_TEXT_MAX];
	fprintf(f, "TITLE%c%s\n", sep, config_version_line());
	fprintf(f, "TIME%c%s%c%" PRId64 "\n", sep, time_print(s->made_s, now), sep, s->made_s);
	header_print(f, sep,
		     "HEADER|CLIENT_LIST|Common Name|Real Address|Virtual Address|"
		     "Virtual IPv6 Address|Bytes Received|Bytes Sent|Connected Since|"
		     "Connected Since (time_t)|Username|Client ID|Peer ID|Data Channel Cipher\n");
	for (size_t i = 0; i < s->client_count; i++)
		client_print(f, sep, &s->clients[i]);
	header_print(f, sep,
		     "HEADER|ROUTING_TABLE|Virtual Address|Common Name|Real Address|Last Ref|"
		     "Last Ref (time_t)\n");
	for (size_t i = 0; i < s->client_count; i++) {
		route_print(f, sep, &s->clients[i], s->clients[i].virtual4);
		route_print(f, sep, &s->clients[i], s->clients[i].virtual6);
	}
	header_print(f, sep,
		     "GLOBAL_STATS|Max bcast/mcast queue length|0\nGLOBAL_STATS|dco_enabled|0\n"
		     "END\n");
}

char *status_text(const struct snapshot *s, int version, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);
	if (f == NULL)
		return NULL;
	if (version == 1)
		text_print1(f, s);
	else
		text_print(f, version == 3 ? '\t' : ',', s);
	bool is_failed = ferror(f) != 0;
	if (fclose(f) != 0 || is_failed) {
		free(text);
		return NULL;
	}
	return text;
}

int status_file_open(const char *path, struct status_file **out)
{
	struct status_file *f = malloc(sizeof(*f));
	if (f == NULL)
		return -ENOMEM;
	f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (f->fd < 0) {
		int err = -errno;
		free(f);
		return err;
	}
	*out = f;
	return 0;
}

int status_file_write(struct status_file *f, const struct snapshot *s, int version)
{
	size_t len = 0;
	char *text = status_text(s, version, &len);
	if (text == NULL)
		return -ENOMEM;
	int err = file_rewrite(f->fd, text, len);
	free(text);
	return err;
}

void status_file_close(struct status_file *f)
{
	if (f == NULL)
		return;
	close(f->fd);
	free(f);
}
