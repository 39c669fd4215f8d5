/* SPDX-License-Identifier: Apache-2.0 */
/* Texts around a configuration: files that it names, the version line, the help. */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crypto/secret.h"

#define FILE_MAX_LEN (1u << 20)

#if defined(__x86_64__)
#define PLATFORM "x86_64-pc-linux-gnu"
#elif defined(__aarch64__)
#define PLATFORM "aarch64-unknown-linux-gnu"
#else
#define PLATFORM "unknown-linux-gnu"
#endif

/* Read to the end, also from a pipe. Returns 0 or -errno; *len may then be past 0. */
static int read_all(int fd, char *buf, size_t cap, size_t *len)
{
	while (*len < cap) {
		ssize_t n = read(fd, buf + *len, cap - *len);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		*len += n > 0 ? (size_t)n : 0;
	}
	return -EFBIG;
}

static int read_path(const char *path, char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* One byte to see that the file is too long, one for the NUL. */
	char *buf = calloc(1, FILE_MAX_LEN + 2);
	size_t n = 0;
	int err = buf ? read_all(fd, buf, FILE_MAX_LEN + 1, &n) : -ENOMEM;
	close(fd);
	if (err) {
		if (buf)
			secret_wipe(buf, n);
		free(buf);
		return err;
	}
	buf[n] = '\0';
	*text = buf;
	*len = n;
	return 0;
}

int config_file_read(const struct config_file *f, char **text, size_t *len)
{
	if (!f->text)
		return f->path ? read_path(f->path, text, len) : -ENOENT;
	char *copy = malloc(f->text_len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, f->text, f->text_len);
	copy[f->text_len] = '\0';
	*text = copy;
	*len = f->text_len;
	return 0;
}

const char *config_version_line(void)
{
	/* Without comma and tab, which separate fields of status files; the second word is what
	 * tools take for the version. */
	return "OpenVPN " OPENVPN_COMPAT_VERSION " " PLATFORM " [shardvpn " SHARDVPN_VERSION
	       "] [SSL (OpenSSL)] [EPOLL] [MH/PKTINFO] [AEAD]";
}

static const char *help_mark(const struct directive *d)
{
	if (d->fate == FATE_REFUSE)
		return "refused: ";
	if (d->fate == FATE_WARN)
		return "accepted: ";
	return d->stage == STAGE_CORE ? "" : "not supported yet";
}

char *config_help_text(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	fprintf(f, "%s\n\n", config_version_line());
	fprintf(f, "usage: shardvpn [--config FILE | FILE] [--DIRECTIVE ARGUMENTS ...] ...\n\n");
	for (unsigned i = 0; i < DIRECTIVE_COUNT; i++) {
		const struct directive *d = directive_get((enum directive_id)i);
		char head[96];
		snprintf(head, sizeof(head), "--%s%s%s", d->name, d->usage[0] ? " " : "", d->usage);
		const char *mark = help_mark(d);
		const char *gap = d->fate == FATE_IMPLEMENT && d->note[0] ? "; " : "";
		fprintf(f, mark[0] ? "%-56s %s%s%s\n" : "%s\n", head, mark, gap, d->note);
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
