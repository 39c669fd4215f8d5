/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/probe.h"

#include "perf/ticks.h"

void probe_send(struct uplink *u, struct member *m, const struct client_world *w, bool is_measured,
		uint64_t now_ms)
{
	const struct inner_stamp stamp = {m->number | (is_measured ? PROBE_MEASURED : 0),
					  m->probe_seq++};
	uint32_t payload_len = w->options->ping_size;

	inner_write_probe(&m->probe, &stamp, ticks_wall_ns(), payload_len, uplink_single(u));
	(void)uplink_send_single(u, m, INNER_ICMP_LEN + payload_len, now_ms);
	if (is_measured)
		count_add(w->counts, COUNT_PINGS_SENT, 1);
}

void probe_take(const struct inner_seen *seen, uint64_t arrived_ns, struct counts *counts,
		struct histogram *pings)
{
	if (!(seen->stamp.stream & PROBE_MEASURED))
		return;
	count_add(counts, COUNT_PINGS_ANSWERED, 1);
	/* A clock that was set back meanwhile says nothing. */
	if (arrived_ns >= seen->sent_ns)
		histogram_add(pings, (arrived_ns - seen->sent_ns) / 1000);
}
