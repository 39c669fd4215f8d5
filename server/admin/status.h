/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_STATUS_H
#define SERVER_ADMIN_STATUS_H

/* Status files, versions 1 to 3, byte for byte as stock 2.6 writes them (options.md, section 6). */

#include <stddef.h>

#include "server/admin/snapshot.h"

/* The whole text; allocated, the caller frees it. version: 1..3. NULL without memory. */
char *status_text(const struct snapshot *s, int version, size_t *len);
/* An open status file: created 0600, rewritten in place (one pwrite, then ftruncate). */
struct status_file;
__attribute__((warn_unused_result)) int status_file_open(const char *path,
							 struct status_file **out);
/* Returns 0 or -errno; a full disk leaves the old text. */
int status_file_write(struct status_file *f, const struct snapshot *s, int version);
void status_file_close(struct status_file *f);

#endif
