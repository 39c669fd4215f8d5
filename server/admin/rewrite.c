/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* A short pwrite would mix new and old text, so the blocks are asked for beforehand. File systems
 * and devices that cannot reserve are written to without. */
static int reserve(int fd, size_t len)
{
	if (len == 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)len) == 0)
		return 0;
	if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
		return -errno;
	return 0;
}

int file_rewrite(int fd, const void *text, size_t len)
{
	if (len > INT32_MAX)
		return -EFBIG;
	int err = reserve(fd, len);
	if (err != 0)
		return err;
	ssize_t n;
	do {
		n = pwrite(fd, text, len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ESPIPE ? -EINVAL : -errno;
	if ((size_t)n != len)
		return -ENOSPC;
	/* A device (/dev/null) has no length to cut. */
	return ftruncate(fd, (off_t)len) == 0 || errno == EINVAL ? 0 : -errno;
}
