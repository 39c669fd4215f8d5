#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Ten clients that renegotiate every 10 s while data flows both ways: packets lost.

What a full queue loses is counted apart: sockets, devices' queues and the server's own overflow on a busy machine
with renegotiations and without. All else that is lost is the renegotiations'. Single packets go down, or a
dropped super-packet would count as one.
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
SHARE, STEP, TRIALS, TRIAL_S = 0.4, 0.6, 4, 2  # each way, of what flows one way alone; then less until nothing overflows
FLOW = load.Load('rekey', '', 0, SIZE)
FULL = ('queue_full', 'handoff_full', 'buffers', 'tun_write', 'link_send')  # the server's reasons that mean no room


def limit(where):
    """Mbit/s that the server takes from its clients."""
    return swarm.measure_up(where, load.Load('limit', '', CLIENTS, SIZE), 2)['mbit']


def split(drops, direction):
    """(drops for want of room, all others) of one direction."""
    mine = {key.split()[1]: n for key, n in drops.items() if key.startswith(direction)}
    full = sum(n for reason, n in mine.items() if reason in FULL)
    return full, sum(mine.values()) - full


def once(where, mbit, seconds=SECONDS):
    known = swarm.settled(where)
    counts, socket = inside.Inside(where), where.udp_errors()
    devices = {ns: where.device_overflows(ns) for ns in (where.srv, where.swarm_ns)}
    crowd = swarm.Swarm(where, CLIENTS, ['--up', '--up-mbit', f'{mbit:.1f}', '--down', *swarm.shape(FLOW), '--seconds',
                                         str(seconds), '--warmup', '0.05', '--rekey', str(EVERY_S), '--no-gro'])
    crowd.wait('ready')
    source = swarm.Source(where, known, CLIENTS, [*swarm.shape(FLOW), '--no-gso', '--mbit', f'{mbit:.1f}', '--seconds',
                                                 str(seconds - 0.5)])
    whole = crowd.result(seconds + 60)
    source.result()
    time.sleep(0.3)
    drops = counts.end().get('drops', {})
    up, down = whole['data']['up'], whole['data']['down']
    up_full, up_other = split(drops, 'ingress')
    down_full, _ = split(drops, 'egress')
    devices = {ns: where.device_overflows(ns) - n for ns, n in devices.items()}
    up_full += devices[where.swarm_ns] + where.udp_errors() - socket
    down_full += devices[where.srv] + down['overflowed']
    return {'mbit': mbit, 'rekeys': whole['rekey']['done'], 'rekeys_failed': whole['rekey']['failed'], 'drops': drops,
            'up': {'packets': up['packets'], 'full': up_full, 'other': up_other},
            'down': {'packets': down['packets'], 'full': min(down_full, down['lost']),
                     'other': max(0, down['lost'] - down_full) + down['dropped']}}


def lossless(where):
    """Mbit/s that flow both ways at once, and no queue overflows."""
    mbit = SHARE * limit(where)
    for _ in range(TRIALS):
        trial = once(where, mbit, TRIAL_S)
        if trial[load.UP]['full'] + trial[load.DOWN]['full'] == 0:
            break
        mbit *= STEP
    return mbit


def measure(b, say):
    with stage.Stage(b, contestant.BY_KEY[contestant.OURS]) as where:
        where.set_merging(True)
        got = once(where, lossless(where))
    say(f'  {got["rekeys"]} renegotiations at {got["mbit"]:.0f} Mbit/s each way: up {got["up"]}, down {got["down"]}, '
        f'drops {got["drops"]}')
    return got


def lines(got):
    reasons = ', '.join(f'{k} {n}' for k, n in sorted(got['drops'].items())) or 'none'
    out = ['| direction | Mbit/s | packets | lost to full queues | lost otherwise |', '|---|---|---|---|---|']
    for d in (load.UP, load.DOWN):
        m = got[d]
        out.append(f'| {d} | {got["mbit"]:.0f} | {m["packets"]} | {m["full"]} | {m["other"]} |')
    return out + ['', f'{got["rekeys"]} renegotiations, {got["rekeys_failed"]} failed. Drops that the server counted: {reasons}.']


def figures_of(got):
    return [figures.at_most(f'packets lost {d} with {got["rekeys"]} renegotiations (full queues aside: {got[d]["full"]})',
                            got[d]['other'], 0) for d in (load.UP, load.DOWN)] + \
        [figures.at_least('renegotiations meanwhile', got['rekeys'], CLIENTS, '')]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
