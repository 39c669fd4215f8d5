/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_REWRITE_H
#define SERVER_ADMIN_REWRITE_H

/* Rewrite a small file in place, so that readers never see half of it (security.md, X-7). */

#include <stddef.h>

/* Replace the content of `fd` by `len` bytes at `text`: room is reserved first, then one pwrite,
 * then ftruncate. Same inode, no temporary file, since a rename fails after the privilege drop.
 * Returns 0 or -errno; a full disk leaves the old text. Thread: any, one at a time. */
__attribute__((warn_unused_result)) int file_rewrite(int fd, const void *text, size_t len);

#endif
