#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Ten clients that renegotiate every 10 s while data flows both ways near what the machine can: packets lost.

Near, and not at: at the very limit queues overflow, with renegotiations and without.
"""
import sys
import time

import paths  # noqa: F401
import contestant
import extra
import figures
import inside
import load
import stage
import swarm

TITLE = 'Renegotiation every 10 s under load'
CLIENTS, SIZE, SECONDS, EVERY_S = 10, 1000, 22, 10
SHARE = 0.35  # of what flows one way alone, each way
FLOW = load.Load('rekey', '', 0, SIZE)


def limit(where):
    """Mbit/s that the server takes from its clients."""
    return swarm.measure_up(where, load.Load('limit', '', CLIENTS, SIZE), 2)['mbit']


def once(where, mbit):
    counts, before, full = inside.Inside(where), where.sink_counts(), where.udp_errors()
    known = swarm.settled(where)
    crowd = swarm.Swarm(where, CLIENTS, ['--up', '--up-mbit', f'{mbit:.1f}', '--down', *swarm.shape(FLOW), '--seconds',
                                         str(SECONDS), '--warmup', '0', '--rekey', str(EVERY_S)])
    crowd.wait('ready')
    source = swarm.Source(where, known, CLIENTS, [*swarm.shape(FLOW), '--mbit', f'{mbit:.1f}', '--seconds', str(SECONDS - 1)])
    whole = crowd.result(SECONDS + 60)
    source.result()
    time.sleep(0.3)
    data, sent = whole['data'], whole['data']['up']['packets']
    arrived = swarm.delivered(before, where.sink_counts(), 'udp') // SIZE
    return {'mbit': mbit, 'rekeys': whole['rekey']['done'], 'rekeys_failed': whole['rekey']['failed'], 'up_sent': sent,
            'up_lost': sent - arrived, 'up_full_buffers': where.udp_errors() - full,
            'down_received': data['down']['packets'], 'down_lost': data['down']['lost'],
            'down_dropped': data['down']['dropped'], 'drops': counts.end().get('drops', {})}


def measure(b, say):
    with stage.Stage(b, contestant.BY_KEY[contestant.OURS]) as where:
        where.set_merging(True)
        got = once(where, SHARE * limit(where))
    say(f'  {got["rekeys"]} renegotiations at {got["mbit"]:.0f} Mbit/s each way: lost up {got["up_lost"]} of {got["up_sent"]} '
        f'(full buffers: {got["up_full_buffers"]}), down {got["down_lost"]} of {got["down_received"]}; drops {got["drops"]}')
    return got


def lines(got):
    reasons = ', '.join(f'{k} {n}' for k, n in sorted(got['drops'].items())) or 'none'
    return ['| direction | Mbit/s | packets | lost |', '|---|---|---|---|',
            f'| up | {got["mbit"]:.0f} | {got["up_sent"]} | {got["up_lost"]} |',
            f'| down | {got["mbit"]:.0f} | {got["down_received"]} | {got["down_lost"]} |', '',
            f'{got["rekeys"]} renegotiations, {got["rekeys_failed"]} failed. Datagrams that found the socket full: '
            f'{got["up_full_buffers"]}. Drops that the server counted: {reasons}.']


def figures_of(got):
    return [figures.at_most(f'packets lost {name} with {got["rekeys"]} renegotiations', got[key], 0)
            for name, key in (('up', 'up_lost'), ('down', 'down_lost'))]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
