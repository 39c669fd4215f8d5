#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""2,000 clients that log in at once, under nice 19, beside a transfer that is paced to a third of the best: what it
keeps. The transfer is TCP to a stock client, then segments of emulated clients, which carry several times as much.
"""
import sys
import time

import paths  # noqa: F401
import contestant
import extra
import figures
import iperf
import lab
import load
import stage
import swarm

TITLE = '2,000 logins at once beside a paced transfer'
CLIENTS, SECONDS, MAX_S = 2000, 2, 60
BULK = load.BY_KEY['tcp10']


class StockTransfer:
    """TCP to the stock client."""

    NAME = 'TCP to a stock client'

    def __init__(self, where):
        self.where = where
        where.need_client()
        arrived, took, _ = iperf.totals(iperf.Run(where, [iperf.tcp_words(10, load.DOWN)], SECONDS).ends())
        self.best = arrived * 8 / took / 1e6
        self.run = iperf.Run(where, [[*iperf.tcp_words(1, load.DOWN, self.best / 3), '-l', '8K']], MAX_S)

    def bytes(self):
        """That arrived so far; headers inside the tunnel are some 4 % of it."""
        for line in self.where.client_ns.run('cat /proc/net/dev').splitlines():
            name, _, numbers = line.partition(':')
            if name.strip() == self.where.device:
                return int(numbers.split()[0])
        raise lab.Failure(f'no device {self.where.device}')

    def stop(self):
        for p in self.run.processes:
            p.terminate()
            p.communicate()


class SwarmTransfer:
    """Segments from ten emulated clients to the server."""

    NAME = 'segments from ten emulated clients'

    def __init__(self, where):
        self.where = where
        where.set_merging(True)
        self.best = swarm.measure_up(where, BULK, SECONDS)['mbit']
        self.crowd = swarm.Swarm(where, swarm.clients_of(BULK), [*swarm.shape(BULK), '--up', '--up-mbit',
                                                                 f'{self.best / 3:.0f}', '--seconds', str(MAX_S)])
        self.crowd.wait('measuring')

    def bytes(self):
        packets, size = self.where.sink_counts()['tcp']
        return size - packets * 40

    def stop(self):
        self.crowd.process.stop()


class Rate:
    """Mbit/s of a transfer since the making."""

    def __init__(self, transfer):
        self.transfer, self.since, self.start = transfer, transfer.bytes(), time.monotonic()

    def mbit(self):
        return (self.transfer.bytes() - self.since) * 8 / (time.monotonic() - self.start) / 1e6


def once(where, kind):
    transfer = kind(where)
    try:
        time.sleep(1)  # past the beginning
        rate = Rate(transfer)
        time.sleep(SECONDS)
        alone, rate = rate.mbit(), Rate(transfer)
        crowd = swarm.Swarm(where, CLIENTS, ['--connect-only', '--at-once', str(CLIENTS)], nice=19)
        got = crowd.result(MAX_S)['login']
        beside = rate.mbit()
    finally:
        transfer.stop()
    return {'best': transfer.best, 'alone': alone, 'beside': beside, 'kept': 100 * beside / alone,
            'connected': got['connected'], 'failed': got['failed'], 'seconds': got['seconds']}


def measure(b, say):
    got = {}
    for kind in (StockTransfer, SwarmTransfer):
        with stage.Stage(b, contestant.BY_KEY[contestant.OURS]) as where:
            try:
                got[kind.NAME] = m = once(where, kind)
            except lab.Failure as failure:
                got[kind.NAME] = {'error': str(failure)}
                say(f'  {kind.NAME}: {failure}')
                continue
        say(f'  {kind.NAME}: {m["connected"]} connected in {m["seconds"]:.1f} s, {m["failed"]} failed; '
            f'{m["alone"]:.0f} Mbit/s alone, {m["beside"]:.0f} beside')
    return got


def lines(got):
    out = ['| transfer | the best, Mbit/s | paced, alone | beside the logins | kept | connected | in |', '|---|---|---|---|---|---|---|']
    for name, m in got.items():
        if 'error' in m:
            out.append(f'| {name} | {m["error"]} | | | | | |')
            continue
        out.append(f'| {name} | {m["best"]:.0f} | {m["alone"]:.0f} | {m["beside"]:.0f} | {m["kept"]:.0f} % | {m["connected"]} | '
                   f'{m["seconds"]:.1f} s |')
    return out


def figures_of(got):
    out = [figures.at_most(f'logins that fail of {CLIENTS} at once', sum(m.get('failed', CLIENTS) for m in got.values()), 0)]
    return out + [figures.at_least(f'what a paced transfer keeps meanwhile ({name})', m.get('kept'), 90, ' %')
                  for name, m in got.items()]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
