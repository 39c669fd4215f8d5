/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_SNAPSHOTS_H
#define SERVER_SNAPSHOTS_H

/* Pictures of the control side for status files and the observer, drawn a few clients a turn.
 * Thread: acceptor. */

#include <stdbool.h>
#include <stdint.h>

struct acceptor_shared;
struct admission;
struct netlink;
struct observer;
struct snapshot;
struct snapshots;
struct status_file;

struct snapshots_setup {
	struct acceptor_shared *shared;
	const struct admission *admission; /* for the dates of certificate and CRL */
	struct observer *observer;	   /* NULL: none */
	struct status_file *status_file;   /* NULL: none */
	struct netlink *netlink;	   /* NULL: nobody can be asked about the tun device */
	int ifindex;			   /* of the tun device */
};

/* Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int snapshots_new(const struct snapshots_setup *setup,
						      struct snapshots **out);
void snapshots_free(struct snapshots *p);

/* Begin a picture if one is due for anybody. `is_status_due`: the status file is to be written. */
void snapshots_begin(struct snapshots *p, bool is_status_due);
/* Draw on; hands the picture over when it is complete. Returns whether there is more to draw. */
bool snapshots_continue(struct snapshots *p);
/* All at once: the status file, and the log if asked (SIGUSR2). */
void snapshots_write_now(struct snapshots *p, bool is_log);

#endif
