# SPDX-License-Identifier: Apache-2.0
"""Attacks on batches and super-packets: inner packets made byte by byte, super-datagrams of any contents, queues
whose owner goes away.

    c0 (stock client; packets are put into its tun device)  --- srv (server)  --- veth 10.90.0.0/24 ---  lan
                                         10.91.0.5, fd91::5: nobody there, packets to them are looked at on lan's link
    with a relay:  c0: client -> 127.0.0.1:relay, relay's outside port -> srv
    The server is stopped (SIGSTOP) while a burst arrives, so that it meets all of it in one batch.
"""
import collections
import os
import random
import signal
import socket
import struct
import time

import crafted
import flows
from case import case, expect, wait_until
from cases_hostile import by_opcode, DATA_V2, drops
from cases_offload import LAN4, LAN6, UDP_SEGMENT, with_lan
from datagrams import Datagrams
from traffic import Relay, Transfer
from vpn import INSIDE4, PORT

NOBODY4, NOBODY6 = '10.91.0.5', 'fd91::5'
ROOM = 'rcvbuf 8388608'


class Line:
    """A server with a client before it and a link behind it on which every packet can be seen."""

    def __init__(self, t, *lines):
        self.t = t
        self.server, self.client, self.lan = with_lan(t, ROOM, *lines)
        t.net.srv.ip('route add 10.91.0.0/24 via 10.90.0.2')
        t.net.srv.ip('route add fd91::/64 via fd90::2')
        self.client.ns.ip('route add 10.91.0.0/24 dev tun0')
        self.client.ns.ip('route add fd91::/64 dev tun0')
        self.client.ns.ip('link set tun0 txqueuelen 5000')
        # What is merged for the tun device is cut and summed up again before it is looked at.
        t.net.srv.run('ethtool -K tolan tx off tso off gso off tx-udp-segmentation off', check=False)
        # Neighbours are known before the first burst, which would not wait for them.
        for to in (LAN4, LAN6):
            wait_until(lambda to=to: ' 0 received' not in t.net.srv.run(f'ping -c 1 -W 1 {to}', check=False), 10,
                       f'no way to {to}')
        self.taker = crafted.Taker(self.lan, 'out', (NOBODY4, NOBODY6))
        self.pairs = [(self.client.address(), NOBODY4), (self.client.address(6), NOBODY6)]

    def burst(self, packets):
        """What comes out behind the server of packets that it meets in one batch."""
        self.server.process.signal(signal.SIGSTOP)
        crafted.inject(self.client.ns, 'tun0', packets)
        time.sleep(0.05)
        self.server.process.signal(signal.SIGCONT)
        return self.taker.take(len(packets))


def by_flow(packets):
    out = collections.defaultdict(list)
    for p in packets:
        out[flows.key(p)].append(p)
    return out


def expect_unchanged(sent, got):
    """Every packet that came was sent so, in the order of its flow; hardly any is missing."""
    mine = by_flow([crafted.comparable(crafted.forwarded(p)) for p in sent])
    theirs = by_flow([crafted.comparable(p) for p in got])
    for k, came in theirs.items():
        left = iter(mine[k])
        for p in came:
            expect(any(p == x for x in left), f'a packet was changed or overtaken: {p[:80].hex()} ({len(p)} bytes)')
    expect(len(got) >= 0.9 * len(sent), f'{len(got)} of {len(sent)} packets came')


def check_crafted(t, *lines):
    line = Line(t, *lines)
    for seed in range(6 if t.is_quick else 60):
        packets = flows.mixture(random.Random(seed), line.pairs, 300)
        expect_unchanged(packets, line.burst(packets))
    line.taker.stop()
    return line


@case(both=True)
def crafted_packets_pass_unchanged(t):
    """packets that can be merged, and such that differ in one field, in one batch: each comes out as it went in"""
    check_crafted(t)


@case(quick=False, ours=True)
def crafted_packets_without_offloads(t):
    """the same without any offload"""
    check_crafted(t, 'offload none')


@case(both=True)
def mutilated_packets(t):
    """packets that are wrong in their structure among right ones: the right ones pass, the tun device refuses none"""
    line = Line(t)
    for seed in range(6 if t.is_quick else 60):
        rng = random.Random(1000 + seed)
        packets = []
        for p in flows.mixture(rng, line.pairs, 200):
            packets += [p, flows.mutilated(rng, p)] if rng.random() < 0.5 else [p]
        line.burst(packets)
        line.server.expect_alive()
    packets = flows.mixture(random.Random(1), line.pairs, 200)
    line.taker.take(0)
    expect_unchanged(packets, line.burst(packets))
    line.taker.stop()
    line.client.ping(500, 3)
    Transfer(line.client.ns, t.net.srv, INSIDE4, 4 << 20).wait(60)


def send_super(sock, segments, size):
    """One UDP_SEGMENT send; every segment but the last has `size` bytes."""
    for n in range(100):
        try:
            sock.sendmsg([b''.join(segments)], [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack('=H', size))])
            return
        except BlockingIOError:
            time.sleep(0.002 * n)


def junk(rng, real, size):
    """A segment of `size` bytes that is none of the client's."""
    kind = rng.randrange(7)
    if kind == 0:
        return rng.randbytes(size)
    if kind == 1:
        return real[:4] + rng.randbytes(size - 4)                                # its peer-id, a wrong tag
    if kind == 2:
        return bytes([DATA_V2 << 3]) + (70000 + rng.randrange(9)).to_bytes(3, 'big') + rng.randbytes(size - 4)
    if kind == 3:
        return bytes([rng.randrange(32) << 3 | rng.randrange(8)]) + rng.randbytes(size - 1)
    if kind == 4:
        return bytes([DATA_V2 << 3 | rng.randrange(1, 8)]) + real[1:]            # another key
    if kind == 5:
        return bytes([4 << 3]) + rng.randbytes(size - 1)                         # control
    return real[:8] + bytes([real[8] ^ 1]) + real[9:]


def behind_relay(t, **options):
    ns = t.net.client()
    relay = Relay(ns, (f'10.71.{ns.n}.1', PORT))
    return t.client(ns=ns, remote=('127.0.0.1', relay.port), **options), relay


def held_packets(t, client, relay, sizes):
    """Datagrams on their way to the server, and what the client made of them, held at the relay."""
    relay.hold = True
    had = len(relay.up)
    move = Datagrams(client.ns, t.net.srv, INSIDE4, sizes, 3000)
    move.threads[1].join()

    def held():
        return [x for x in by_opcode(list(relay.up)[had:], DATA_V2) if len(x) > 300]
    end = time.monotonic() + 3
    while len(held()) < len(sizes) and time.monotonic() < end:
        time.sleep(0.02)
    return move, held()


def accounted(server):
    """Packets for which there was no room on the way from the acceptor, whose socket a super-datagram may meet."""
    had = drops(server)
    return sum(had.get(x, 0) for x in ('buffers', 'queue_full', 'handoff_full'))


@case(both=True, ours=True)
def super_datagrams_of_any_contents(t):
    """super-datagrams in which a client's packets stand among replays, forgeries, control packets and other peers':
    its packets are all found, whichever segment they are"""
    # A super-datagram goes where its first segment belongs, so some come by way of the acceptor, and late.
    server = t.server(ROOM, 'replay-window 1024 15')
    client, relay = behind_relay(t)
    client.ping(100, 3)
    rng, missing = random.Random(5), 0
    for _ in range(3 if t.is_quick else 30):
        move, packets = held_packets(t, client, relay, [400] * 200)
        relay.up.clear()
        size, last, never_sent = len(packets[0]), packets[-1], len(move.sizes) - len(packets)
        while packets:
            segments = []
            for _ in range(rng.randrange(1, 40)):
                is_real = packets and len(packets[0]) == size and rng.random() < 0.5
                segments.append(packets.pop(0) if is_real else junk(rng, last, size))
            segments.append(rng.randbytes(rng.randrange(1, size)))
            send_super(relay.outside, segments, size)
            packets = [x for x in packets if len(x) == size]
        relay.hold = False
        missing += move.wait() - never_sent
        wait_until(lambda: accounted(server) >= missing, 3,
                   lambda: f'{missing} packets of the client were not found; dropped: {drops(server)}')
        expect(move.repeated == 0, f'{move.repeated} packets were taken twice')
    server.expect_alive()
    client.ping(1000, 3)
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    relay.stop()


@case()
def super_datagrams_of_any_size(t):
    """super-datagrams of tiny, huge and uneven segments from strangers and from a client's address"""
    server = t.server(ROOM)
    client, relay = behind_relay(t)
    client.ping(100, 3)
    rng, stranger = random.Random(6), t.net.client()
    real = by_opcode(relay.up, DATA_V2)[-1]
    with stranger.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((f'10.71.{stranger.n}.1', PORT))
        for size, count in ((1, 64), (2, 64), (4, 64), (8, 64), (24, 64), (25, 64), (100, 64), (1000, 60), (1472, 40)):
            for sock in (s, relay.outside):
                segments = [(real + bytes(size))[:size] for _ in range(count - 1)] + [rng.randbytes(1)]
                send_super(sock, segments, size)
                send_super(sock, [bytes([DATA_V2 << 3]) + rng.randbytes(size - 1) for _ in range(count)], size)
        for size in (60000, 65507):
            s.send(bytes([DATA_V2 << 3, 0, 0, 0]) + rng.randbytes(size - 4))
    client.ping(1000, 5)
    Transfer(client.ns, t.net.srv, INSIDE4, 1 << 20).wait(60)
    server.expect_alive()
    relay.stop()


@case(quick=False)
def super_flood_at_one_peer(t):
    """a stranger names a client's peer-id in super-datagrams, as many as it can send: the client's transfer ends"""
    server = t.server()
    client, relay = behind_relay(t)
    client.ping(100, 3)
    stranger = t.net.client()
    head = by_opcode(relay.up, DATA_V2)[-1][:4]
    move = Transfer(client.ns, t.net.srv, INSIDE4, 2 << 20, seconds=2)
    with stranger.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((f'10.71.{stranger.n}.1', PORT))
        while move.is_running():
            send_super(s, [head + os.urandom(96) for _ in range(40)], 100)
            time.sleep(0.002)
    move.wait(60)
    server.expect_alive()
    client.ping(500, 3)
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    relay.stop()


@case(quick=False, seconds=90)
def clients_die_under_load(t):
    """clients are killed while much is on its way to them, forgotten by ping-restart, and come again; others go on"""
    server = t.server('keepalive 1 3', drop=['keepalive'])
    clients = [t.client('--ping-restart 0', cert=f'client{n + 1}') for n in range(4)]
    kept, mortal = clients[:2], clients[2:]
    for _ in range(2 if t.is_quick else 10):
        lost = [Transfer(t.net.srv, c.ns, c.address(), 200 << 20) for c in mortal]
        going = [Transfer(t.net.srv, c.ns, c.address(), 8 << 20, seconds=4) for c in kept]
        wait_until(lambda: all(m.got > 1 << 20 for m in lost), 20, 'the transfers did not start')
        mark = server.mark()
        for c in mortal:
            c.process.kill()
        if t.setup.is_ours:
            server.wait_log(r'client3/\S+ .*Inactivity timeout', 12, mark)
        for m in going:
            m.wait(60)
        for c in mortal:
            c.start()
            c.wait_connected()
            c.ping(1000, 3)
    server.expect_alive()


@case(quick=False, ours=True, seconds=90)
def keys_and_peers_go_with_queues_full(t):
    """a slow client's queue is full while its keys change and while it is removed"""
    server = t.server('reneg-sec 2', 'client-rate 4m 4m', 'keepalive 1 4', drop=['keepalive'])
    a, b = t.client(cert='client1'), t.client(cert='client2')
    storms = [Datagrams(t.net.srv, c.ns, c.address(), [1000] * 8000, 2000) for c in (a, b)]
    moves = [Transfer(c.ns, t.net.srv, INSIDE4, 1 << 20, seconds=4) for c in (a, b)]
    time.sleep(2.5)
    b.process.kill()
    for s in storms:
        s.wait()
    moves[0].wait(60)
    server.wait_log(r'client2/\S+ .*Inactivity timeout', 12)
    b.start()
    b.wait_connected()
    b.ping(1000, 3)
    a.ping(1000, 3)
    expect(len(storms[0].got) > 100, f'{len(storms[0].got)} datagrams arrived')
    expect(a.process.count('Initialization Sequence Completed') == 1, 'the first client had to start again')


@case(quick=False, ours=True, seconds=90)
def little_memory(t):
    """the smallest worker-memory: bursts are dropped and counted, bytes arrive all the same"""
    server = t.server('worker-memory 1048576', 'client-to-client')
    clients = [t.client(cert=f'client{n + 1}') for n in range(4)]
    storms = [Datagrams(t.net.srv, c.ns, c.address(), [60, 1400] * 4000, 20000) for c in clients]
    moves = [Transfer(c.ns, t.net.srv, INSIDE4, 2 << 20) for c in clients]
    moves += [Transfer(t.net.srv, c.ns, c.address(), 2 << 20) for c in clients]
    moves += [Transfer(c.ns, o.ns, o.address(), 2 << 20) for c, o in zip(clients, clients[1:] + clients[:1])]
    for m in moves:
        m.wait(80)
    for s in storms:
        s.wait()
    server.expect_alive()
    wait_until(lambda: all(v > 0 for _, v in server.metrics().all('shardvpn_buffers_free')), 5,
               'buffers did not come home')
