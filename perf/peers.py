#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""64-byte datagrams, each to another of 10,000 clients: nothing can be merged, and no key is warm."""
import sys
import time

import paths  # noqa: F401
import contestant
import extra
import figures
import lab
import load
import stage
import swarm

TITLE = 'Datagrams of 64 bytes to 10,000 clients'
PEERS, SECONDS = 10000, 3
STOCK_PEERS = 2000  # what it costs a datagram hardly depends on their number, and it connects slowly
LOAD = load.BY_KEY['udp64']


def once(where, peers):
    known = swarm.settled(where)
    started = time.monotonic()
    crowd = swarm.Swarm(where, peers, ['--down', *swarm.shape(LOAD), '--seconds', str(SECONDS), '--warmup', '4',
                                       '--keepalive', '0'])
    crowd.wait('ready', 180)
    connected = time.monotonic() - started
    source = swarm.Source(where, known, peers, [*swarm.shape(LOAD), '--burst', '1', '--fit', '--seconds', str(SECONDS + 5)])
    spent, _, _ = swarm.watch(where, crowd, SECONDS)
    data = crowd.result()['data']
    source.result()
    arrived = data['down']['bytes'] * spent.seconds / data['seconds']
    got = load.sample(LOAD, spent, arrived, spent.seconds, data['down']['loss_percent'], None)
    return {**got, 'peers': peers, 'connected_s': connected}


def measure(b, say):
    got = {}
    for who, peers in ((contestant.STOCK, STOCK_PEERS), (contestant.OURS, PEERS)):
        with stage.Stage(b, contestant.BY_KEY[who], lines=['keepalive 60 300'], drop=['keepalive']) as where:
            got[who] = m = once(where, peers)
        say(f'  {who:6} {peers} clients (connected in {m["connected_s"]:.1f} s): {m["rate"] / 1e3:.0f}k/s, '
            f'server {m["server"]:.2f} us, loss {m["loss"]:.1f} %')
    return got


def lines(got):
    out = ['| server | clients | datagrams a second | server CPU each | machine CPU each | lost |', '|---|---|---|---|---|---|']
    for who, m in got.items():
        out.append(f'| {contestant.BY_KEY[who].title} | {m["peers"]} | {m["rate"]:.0f} | {m["server"]:.2f} us | '
                   f'{m["machine"]:.2f} us | {m["loss"]:.1f} % |')
    return out


def figures_of(got):
    stock, ours = got[contestant.STOCK], got[contestant.OURS]
    return [figures.at_least(f'64 B to {ours["peers"]} peers', stock['server'] / ours['server'], 4, 'x')]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
