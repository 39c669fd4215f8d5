#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Logins a second and their CPU, ours and stock; and 2,000 clients that come at once beside a paced transfer."""
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

TITLE = 'Logins'
LOGINS, STORM, SECONDS = 400, 2000, 2
STORM_MAX_S = 60
WHO = (contestant.STOCK, contestant.OURS)


def logins(where):
    crowd = swarm.Swarm(where, LOGINS, ['--connect-only'])
    got = crowd.result(swarm.CONNECT_S)['login']
    lab.expect(got['failed'] == 0, f'{got["failed"]} logins failed')
    return got


def received_bytes(where):
    for line in where.client_ns.run('cat /proc/net/dev').splitlines():
        name, _, numbers = line.partition(':')
        if name.strip() == where.device:
            return int(numbers.split()[0])
    raise lab.Failure(f'no device {where.device}')


class Transfer:
    """A paced TCP transfer to the stock client, for as long as it takes."""

    def __init__(self, where, mbit):
        self.where = where
        self.run = iperf.Run(where, [[*iperf.tcp_words(1, load.DOWN, mbit), '-l', '8K']], STORM_MAX_S)
        time.sleep(1)  # past the beginning
        self.restart()

    def restart(self):
        self.since, self.start = received_bytes(self.where), time.monotonic()

    def mbit(self):
        """Since restart(); headers inside the tunnel are some 4 % of it, the same with and without logins."""
        return (received_bytes(self.where) - self.since) * 8 / (time.monotonic() - self.start) / 1e6

    def stop(self):
        for p in self.run.processes:
            p.terminate()
            p.communicate()


def storm(where, say):
    """2,000 logins under nice 19 beside a transfer of a third of the best."""
    where.need_client()
    arrived, took, _ = iperf.totals(iperf.Run(where, [iperf.tcp_words(10, load.DOWN)], SECONDS).ends())
    best = arrived * 8 / took / 1e6
    transfer = Transfer(where, best / 3)
    try:
        time.sleep(SECONDS)
        alone = transfer.mbit()
        transfer.restart()
        crowd = swarm.Swarm(where, STORM, ['--connect-only', '--at-once', str(STORM)], nice=19)
        got = crowd.result(STORM_MAX_S)['login']
        beside = transfer.mbit()
    finally:
        transfer.stop()
    say(f'  {STORM} at once: {got["connected"]} in {got["seconds"]:.1f} s, {got["failed"]} failed; '
        f'transfer {alone:.0f} alone, {beside:.0f} Mbit/s beside')
    return {'best_mbit': best, 'alone_mbit': alone, 'beside_mbit': beside, 'kept': 100 * beside / alone, **got}


def measure(b, say):
    got = {}
    for who in WHO:
        with stage.Stage(b, contestant.BY_KEY[who]) as where:
            got[who] = m = logins(where)
            say(f'  {who:6} {m["per_second"]:.0f} logins a second, {m["server_cpu_ms_each"]:.2f} ms each')
    with stage.Stage(b, contestant.BY_KEY[contestant.OURS]) as where:
        got['storm'] = storm(where, say)
    return got


def lines(got):
    out = ['| server | logins a second | server CPU each | machine CPU each | p50, ms | p99, ms |', '|---|---|---|---|---|---|']
    for who in WHO:
        m = got[who]
        out.append(f'| {contestant.BY_KEY[who].title} | {m["per_second"]:.0f} | {m["server_cpu_ms_each"]:.2f} ms | '
                   f'{m["machine_cpu_ms_each"]:.2f} ms | {m["latency_ms"]["p50"]:.0f} | {m["latency_ms"]["p99"]:.0f} |')
    s = got['storm']
    return out + ['', f'{STORM} clients at once (under nice 19): {s["connected"]} in {s["seconds"]:.1f} s, {s["failed"]} failed; a '
                  f'transfer paced to a third of the best ({s["alone_mbit"]:.0f} of {s["best_mbit"]:.0f} Mbit/s) went on with '
                  f'{s["beside_mbit"]:.0f} Mbit/s, {s["kept"]:.0f} %.']


def figures_of(got):
    stock, ours, s = got[contestant.STOCK], got[contestant.OURS], got['storm']
    return [figures.at_least('CPU of a login', stock['server_cpu_ms_each'] / ours['server_cpu_ms_each'], 2, 'x'),
            figures.at_most(f'logins that fail of {STORM} at once', s['failed'], 0),
            figures.at_least('what a paced transfer keeps meanwhile', s['kept'], 90, ' %')]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
