#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""One bulk flow and 50 paced clients on a server with one worker: what the paced ones get, and how soon.

The bulk flow is one TCP stream to a stock client, then a flood of TCP segments to one emulated client that does not
slow down by itself.
"""
import sys

import paths  # noqa: F401
import contestant
import extra
import figures
import iperf
import lab
import load
import stage
import swarm

TITLE = 'One bulk flow and 50 paced clients on one worker'
PACED, MBIT_EACH, SIZE, SECONDS = 50, 1, 500, 4
WHO = (contestant.STOCK, contestant.OURS)
TCP, FLOOD = 'one TCP stream', 'a flood'


class TcpBulk:
    """A stock client that takes what one TCP stream gives."""

    def __init__(self, where):
        where.need_client()
        self.run = iperf.Run(where, [iperf.tcp_words(1, load.DOWN)], SECONDS + 3)

    def mbit(self):
        arrived, took, _ = iperf.totals(self.run.ends())
        return arrived * 8 / took / 1e6


class FloodBulk:
    """One emulated client that is sent more than the worker can seal."""

    def __init__(self, where):
        known = where.addresses()
        self.crowd = swarm.Swarm(where, 1, ['--down', '--tcp', '--size', str(swarm.TCP_SIZE), '--seconds', str(SECONDS + 2)])
        self.crowd.wait('ready')
        self.source = swarm.Source(where, known, 1, ['--tcp', '--size', str(swarm.TCP_SIZE), '--seconds', str(SECONDS + 3)])

    def mbit(self):
        self.source.result()
        return self.crowd.result()['data']['down']['mbit']


def once(where, bulk):
    """{'bulk_mbit', 'p50', 'p99': us, 'share_min', 'share_mean': percent of what each was sent}"""
    known = where.addresses()
    crowd = swarm.Swarm(where, PACED, ['--down', '--udp', '--size', str(SIZE), '--seconds', str(SECONDS), '--warmup', '1.5',
                                       '--ping', where.target, '--ping-interval-ms', str(PACED * swarm.PING_MS)])
    crowd.wait('ready')
    source = swarm.Source(where, known, PACED, ['--udp', '--size', str(SIZE), '--burst', '1', '--no-gso', '--mbit',
                                                str(PACED * MBIT_EACH), '--seconds', str(SECONDS + 2.5)])
    heavy = bulk(where)
    data = crowd.result()['data']
    sent = source.result()
    mean = 100 * data['down']['mbit'] / sent['mbit']
    rtt = swarm.rtt_of(data)
    return {'bulk_mbit': heavy.mbit(), 'p50': rtt['p50'], 'p99': rtt['p99'], 'share_mean': mean,
            'share_min': mean * data['share']['down_min_percent'] / 100}


def measure(b, say):
    got = {}
    for who in WHO:
        for name, bulk in ((TCP, TcpBulk), (FLOOD, FloodBulk)):
            with stage.Stage(b, contestant.BY_KEY[who], workers=1) as where:
                try:
                    m = once(where, bulk)
                except lab.Failure as failure:
                    if who == contestant.OURS:
                        raise
                    say(f'  {who} with {name}: {failure}')
                    continue
            got.setdefault(name, {})[who] = m
            say(f'  {name:15} {who:6} bulk {m["bulk_mbit"]:.0f} Mbit/s, paced: RTT {m["p50"]:.0f} / {m["p99"]:.0f} us, '
                f'share {m["share_min"]:.0f} % at least, {m["share_mean"]:.0f} % in the mean')
    return got


def lines(got):
    out = [f'{PACED} clients, each sent {MBIT_EACH} Mbit/s of {SIZE}-byte datagrams.', '',
           '| bulk | server | bulk, Mbit/s | paced: p50, ms | p99, ms | smallest share | mean |', '|---|---|---|---|---|---|---|']
    for name, of in got.items():
        for who, m in of.items():
            out.append(f'| {name} | {contestant.BY_KEY[who].title} | {m["bulk_mbit"]:.0f} | {m["p50"] / 1e3:.2f} | '
                       f'{m["p99"] / 1e3:.2f} | {m["share_min"]:.0f} % | {m["share_mean"]:.0f} % |')
    return out


def figures_of(got):
    m = got.get(TCP, {}).get(contestant.OURS, {})
    return [figures.at_most('RTT p99 of 50 paced clients beside a bulk flow', m['p99'] / 1e3 if m else None, 5, ' ms'),
            figures.at_least('smallest share of a paced client', m.get('share_min'), 80, ' %')]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
