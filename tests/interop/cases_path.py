# SPDX-License-Identifier: Apache-2.0
"""Paths outside that lose, repeat, reorder and merge datagrams, and paths that are narrow.

    far (stock client)  --- veth 10.73.0.0/24 ---  c0 (shim)  --- veth 10.71.0.0/24 ---  srv (server, 10.80.0.1)
    without a shim:  c0 (stock client)  --- veth 10.71.0.0/24, MTU as told ---  srv
"""
import itertools

from capture import Capture, check_packet_ids
from case import case, expect
from datagrams import Datagrams
from tools import compiled
from traffic import Transfer
from vpn import INSIDE4, INSIDE6, PORT

HEADERS = {4: 28, 6: 48}  # IP and UDP
SIZES = (4, 64, 500, 1200, 1372, 1400, 1472)


class BadPath:
    """A client behind a shim. Parts of 10,000: loss, repeat, reorder."""

    def __init__(self, t, loss=0, repeat=0, reorder=0, merge=0, seed=1, **options):
        self.t = t
        middle, far = t.net.client(), t.lab.namespace('far')
        t.lab.link(middle, far, 'tofar', 'out')
        middle.ip('addr add 10.73.0.1/24 dev tofar')
        far.ip('addr add 10.73.0.2/24 dev out')
        argv = [compiled(t.lab, 'shim.c'), '10.73.0.1', f'10.71.{middle.n}.1', PORT, loss, repeat, reorder, merge, seed]
        self.shim = t.lab.start(middle, 'shim', [str(x) for x in argv])
        self.shim.wait_log('ready', 5)
        self.client = t.client(ns=far, remote=('10.73.0.1', PORT), **options)

    def stop(self):
        """{'lost': n, ...}: what the shim did."""
        expect(self.shim.stop() == 0, f'the shim ended with {self.shim.popen.returncode}')
        words = self.shim.text().splitlines()[-1].split()
        return dict(zip(words[::2], (int(x) for x in words[1::2])))


def check_both_ways(t, client, total, count, rounds):
    """TCP each way and both at once, UDP each way: what arrives is what was sent."""
    srv, ns, here = t.net.srv, client.ns, client.address()
    Transfer(ns, srv, INSIDE4, total).wait(150)
    Transfer(srv, ns, here, total).wait(150)
    for x in [Transfer(ns, srv, INSIDE6, total // 4), Transfer(srv, ns, client.address(6), total // 4)]:
        x.wait(150)
    sizes = list(itertools.islice(itertools.cycle(SIZES), count))
    for x in [Datagrams(ns, srv, INSIDE4, sizes), Datagrams(srv, ns, here, sizes),
              Datagrams(ns, srv, INSIDE6, sizes), Datagrams(srv, ns, client.address(6), sizes)]:
        x.wait_all(rounds)


def run_bad_path(t, wanted, quick_mb=4, **faults):
    """Volume through a shim; `wanted`: the faults that must have happened."""
    server = t.server()
    path = BadPath(t, **faults)
    capture = Capture(t.lab, t.net.srv, 'to0', PORT)
    check_both_ways(t, path.client, t.bytes(quick_mb, 20), 700 if t.is_quick else 3000, rounds=8)
    packets = capture.stop()
    did = path.stop()
    for what in wanted:
        expect(did[what] >= 10, f'the shim did too little: {did}')
    down = [p for p in packets if p.is_down]
    expect(len(down) > 1000, f'{len(down)} packets of the server were captured')
    check_packet_ids(down)
    if t.setup.is_ours:
        drops = server.metrics()
        expect(drops.sum('shardvpn_dropped_packets_total', reason='decrypt') == 0, 'honest packets failed to open')
        if not faults.get('repeat'):
            count = drops.sum('shardvpn_dropped_packets_total', reason='replay_duplicate')
            expect(count == 0, f'{count} packets were taken for repeated ones')


@case(both=True)
def path_loses_and_reorders(t):
    """a path that loses 1 %, repeats 1 % and reorders 2 % of all datagrams, each way"""
    run_bad_path(t, ['lost', 'repeated', 'reordered'], 2, loss=100, repeat=100, reorder=200)


@case(both=True)
def path_merges(t):
    """datagrams of a client come merged into super-datagrams, in order and out of order"""
    run_bad_path(t, ['merged', 'reordered'], 2, merge=1, reorder=100)


@case(quick=False, seconds=120)
def path_loses(t):
    """a path that loses 3 % of all datagrams"""
    run_bad_path(t, ['lost'], loss=300)


@case(quick=False, seconds=120)
def path_reorders(t):
    """a path that reorders a tenth of all datagrams by up to 20 places"""
    run_bad_path(t, ['reordered'], reorder=1000)


@case(quick=False, seconds=120)
def path_repeats(t):
    """a path that brings a fifth of all datagrams twice: the second is dropped and counted"""
    run_bad_path(t, ['repeated'], repeat=2000)
    count = t.servers[0].metrics().sum('shardvpn_dropped_packets_total', reason='replay_duplicate')
    expect(count >= 100, f'{count} repeated packets were counted')


@case(quick=False, seconds=120)
def path_does_everything(t):
    """loss, repetition, reordering and merging at once, with P_DATA_V1"""
    run_bad_path(t, ['lost', 'repeated', 'reordered', 'merged'], loss=100, repeat=300, reorder=300, merge=1, data='v1')


def check_sizes(t, client, step=1):
    """Every size of an inner packet, from 500 bytes to the MTU of the tunnel, both ways, both families."""
    moves = []
    for family, up, down in ((4, INSIDE4, client.address()), (6, INSIDE6, client.address(6))):
        sizes = range(500 - HEADERS[family], 1500 - HEADERS[family] + 1, step)
        moves.append(Datagrams(client.ns, t.net.srv, up, sizes))
        moves.append(Datagrams(t.net.srv, client.ns, down, sizes))
    for m in moves:
        m.wait_all(rounds=3)


def run_sizes(t, mtu, lines=(), family=4, step=1):
    t.server(*lines, *(['proto udp6'] if family == 6 else []), drop=['proto'] if family == 6 else [])
    client = t.client(ns=t.net.client(mtu=mtu), family=family)
    check_sizes(t, client, step)
    Transfer(client.ns, t.net.srv, INSIDE4, 4 << 20).wait(60)
    Transfer(t.net.srv, client.ns, client.address(), 4 << 20).wait(60)
    check_sizes(t, client, step)  # after what the transfers may have taught about the path


@case(quick=False)
def sizes_path_1500(t):
    """every inner size passes on a path of 1500 bytes: what grows over it is fragmented outside"""
    run_sizes(t, 1500)


@case(both=True)
def sizes_path_1400(t):
    """every inner size passes on a path of 1400 bytes"""
    run_sizes(t, 1400)


@case(quick=False)
def sizes_path_1492(t):
    """every inner size passes on a path of 1492 bytes"""
    run_sizes(t, 1492)


@case(quick=False)
def sizes_path_1400_ipv6(t):
    """every inner size passes on a path of 1400 bytes, IPv6 outside"""
    run_sizes(t, 1400, family=6)


@case(quick=False, ours=True)
def sizes_without_offload(t):
    """every inner size passes with all offloads off, on a path of 1400 bytes"""
    run_sizes(t, 1400, ['offload none'])


@case(quick=False)
def sizes_beyond_a_router(t):
    """the narrow place is a hop away: the server learns it from ICMP, if at all; every size goes on to pass"""
    t.server()
    middle, far = t.net.client(), t.lab.namespace('far')
    t.lab.link(middle, far, 'tofar', 'out', mtu=1400)
    middle.ip('addr add 10.73.0.1/24 dev tofar')
    far.ip('addr add 10.73.0.2/24 dev out')
    far.ip('route add 10.71.0.0/24 via 10.73.0.1')
    t.net.srv.ip('route add 10.73.0.0/24 via 10.71.0.2')
    middle.run('sysctl -qw net.ipv4.ip_forward=1')
    client = t.client(ns=far, remote=('10.71.0.1', PORT))
    check_sizes(t, client)
    Transfer(t.net.srv, client.ns, client.address(), t.bytes(5, 20)).wait(60)
    check_sizes(t, client)
    t.servers[0].expect_alive()


