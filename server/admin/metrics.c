/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/metrics.h"

#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>

#include "server/admin/metrics_families.h"
#include "server/admin/observer.h"
#include "workers/mailbox.h"

char *metrics_print(const struct metrics_input *in, enum metrics_format format,
		    enum metrics_scope scope, size_t *len)
{
	char *text = NULL;
	struct metrics_text m = {.format = format};
	m.f = open_memstream(&text, len);
	if (m.f == NULL)
		return NULL;
	(void)__fsetlocking(m.f, FSETLOCKING_BYCALLER);
	switch (scope) {
	case METRICS_SERVER:
		metrics_process(&m, in);
		metrics_control(&m, in);
		metrics_workers(&m, in);
		break;
	case METRICS_PEERS:
		metrics_peers(&m, in);
		break;
	}
	metrics_end(&m);
	bool is_failed = ferror(m.f) != 0;
	if (fclose(m.f) == 0 && !is_failed)
		return text;
	free(text);
	return NULL;
}

static void worker_read(const struct observer_setup *s, unsigned i, struct metrics_worker *out)
{
	counters_read(worker_counters(s->workers[i]), &out->counters);
	out->io_engine = worker_io_name(s->workers[i]);
	out->aead_engine = worker_aead_name(s->workers[i]);
	out->cpu = worker_cpu(s->workers[i]);
	out->ring_depth = mailbox_depth(s->mailboxes, i + 1);
}

char *metrics_of(struct observer *o, enum metrics_format format, enum metrics_scope scope,
		 size_t *len)
{
	const struct observer_setup *s = observer_get_setup(o);
	struct metrics_worker *workers = calloc(s->worker_count + 1u, sizeof(*workers));
	if (workers == NULL)
		return NULL;
	struct metrics_input in = {
		.config = s->config,
		.snapshot = observer_snapshot(o),
		.workers = workers,
		.worker_count = s->worker_count,
		.ring_capacity = mailbox_capacity(),
		.start_time_s = s->start_time_s,
	};
	for (unsigned i = 0; i < s->worker_count; i++)
		worker_read(s, i, &workers[i]);
	char *text = metrics_print(&in, format, scope, len);
	free(workers);
	return text;
}
