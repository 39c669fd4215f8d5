#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""System calls and allocations of the packet path, of our server under bulk.

Allocations: all requests that jemalloc counted until the process ends, of a run with the load and of one without, in
which the same clients connect and stay as long, and the metrics are read as often.
"""
import re
import sys

import paths  # noqa: F401
import contestant
import extra
import figures
import inside
import lab
import load
import stage
import swarm

TITLE = 'System calls and allocations in bulk'
SECONDS = 3
LOAD = load.BY_KEY['tcp10']
# nrequests of all arenas: those that a thread's cache answered included
TOTALS = re.compile(r'^Merged arenas stats:.*?^small:\s+(\d+)\s+(\d+)\s+\S+\s+(\d+)\s+\S+\s+(\d+).*?'
                    r'^large:\s+(\d+)\s+(\d+)\s+\S+\s+(\d+)\s+\S+\s+(\d+)', re.M | re.S)


def _stage(b):
    return stage.Stage(b, contestant.BY_KEY[contestant.OURS], argv_prefix=['env', 'MALLOC_CONF=stats_print:true'])


def requests(where):
    """Allocations of the whole life of the server, which ends."""
    lab.expect(where.server.process.stop() == 0, 'the server did not end well')
    found = TOTALS.search(where.server.text())
    return int(found.group(4)) + int(found.group(8)) if found else None


def idle(b):
    with _stage(b) as where:
        where.set_merging(True)
        counts = inside.Inside(where)
        known = swarm.settled(where)
        crowd = swarm.Swarm(where, swarm.clients_of(LOAD), ['--seconds', str(SECONDS), '--warmup', str(swarm.WARMUP_S)])
        crowd.wait('ready')
        swarm.newcomers(where, known, swarm.clients_of(LOAD))
        crowd.result()
        counts.end()
        return requests(where)


def once(b, direction):
    with _stage(b) as where:
        where.set_merging(True)
        counts = inside.Inside(where)
        sample = swarm.measure(where, LOAD, direction, SECONDS)
        seen = counts.end()
        return {'mbit': sample['mbit'], 'server': sample['server'], **seen, 'requests': requests(where)}


def measure(b, say):
    quiet = idle(b)
    got = {'idle_requests': quiet}
    for direction in (load.UP, load.DOWN):
        got[direction] = m = once(b, direction)
        known = quiet is not None and m['requests'] is not None
        m['allocations'] = max(0, m['requests'] - quiet) / m['packets'] if known else None
        say(f'  {direction:4} {m["mbit"]:.0f} Mbit/s: {m["calls"]:.4f} system calls a packet, '
            f'{m["packets"]:.0f} packets, allocations a packet {m["allocations"]}')
    return got


def lines(got):
    out = ['| direction | packets | system calls a packet | packets a batch | allocations a packet |', '|---|---|---|---|---|']
    for direction in (load.UP, load.DOWN):
        m = got[direction]
        batch = m['open_batch'] if direction == load.UP else m['seal_batch']
        each = 'not counted' if m['allocations'] is None else f'{m["allocations"]:.6f}'
        out.append(f'| {direction} | {m["packets"]:.0f} | {m["calls"]:.4f} | {batch:.1f} | {each} |')
    return out


def figures_of(got):
    out = []
    for direction in (load.UP, load.DOWN):
        m = got[direction]
        out.append(figures.at_most(f'system calls a packet in bulk, {direction}', m['calls'], 0.1))
        # Not 0: logins and scrapes differ by some hundreds from run to run.
        out.append(figures.at_most(f'allocations a packet in bulk, {direction}', m['allocations'], 0.001))
    return out


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
