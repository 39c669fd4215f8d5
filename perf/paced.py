#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Round trips while one TCP stream runs at 80 % of what the stock daemon carries, the same pace for both."""
import statistics
import sys

import paths  # noqa: F401
import contestant
import extra
import figures
import iperf
import load
import prober
import stage

TITLE = 'Round trips at 80 % of the stock throughput'
SHARE, ROUNDS, SECONDS = 0.8, 3, 3
WHO = (contestant.STOCK, contestant.OURS)


def flat_out(where, direction):
    """Mbit/s of one stream."""
    arrived, took, _ = iperf.totals(iperf.Run(where, [iperf.tcp_words(1, direction)], SECONDS).ends())
    return arrived * 8 / took / 1e6


def once(where, direction, mbit):
    probe = prober.Prober(where)
    # Small writes, or iperf3 paces in bursts of 128 KiB.
    arrived, took, _ = iperf.totals(iperf.Run(where, [[*iperf.tcp_words(1, direction, mbit), '-l', '8K']], SECONDS).ends())
    got = probe.end()
    return {'mbit': arrived * 8 / took / 1e6, 'p50': got['p50'], 'p99': got['p99'], 'loss': got['loss']}


def measure(b, say):
    with stage.Stage(b, contestant.BY_KEY[contestant.STOCK]) as stock, \
            stage.Stage(b, contestant.BY_KEY[contestant.OURS]) as ours:
        stages = dict(zip(WHO, (stock, ours)))
        for s in stages.values():
            s.need_client()
        return {direction: _direction(stages, direction, say) for direction in (load.UP, load.DOWN)}


def _direction(stages, direction, say):
    pace = SHARE * flat_out(stages[contestant.STOCK], direction)
    samples = {who: [] for who in WHO}
    for _ in range(ROUNDS):
        for who in WHO:
            samples[who].append(once(stages[who], direction, pace))
    medians = {who: {k: statistics.median(s[k] for s in samples[who]) for k in samples[who][0]} for who in WHO}
    for who in WHO:
        say(f'  {direction} at {pace:.0f} Mbit/s {who:6} {medians[who]["mbit"]:.0f} Mbit/s, '
            f'RTT {medians[who]["p50"]:.0f} / {medians[who]["p99"]:.0f} us')
    return {'pace_mbit': pace, **medians}


def lines(got):
    out = ['| direction | pace, Mbit/s | | carried, Mbit/s | p50, ms | p99, ms |', '|---|---|---|---|---|---|']
    for direction, of in got.items():
        for who in WHO:
            m = of[who]
            out.append(f'| {direction} | {of["pace_mbit"]:.0f} | {contestant.BY_KEY[who].title} | {m["mbit"]:.0f} | '
                       f'{m["p50"] / 1e3:.2f} | {m["p99"] / 1e3:.2f} |')
    return out


def figures_of(got):
    return [figures.at_most(f'RTT p99 {d}, both at 80 % of stock', of[contestant.OURS]['p99'] / 1e3,
                            round(of[contestant.STOCK]['p99'] / 1e3, 2), ' ms') for d, of in got.items()]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
