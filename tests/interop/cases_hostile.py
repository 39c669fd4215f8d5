# SPDX-License-Identifier: Apache-2.0
"""Packets that no honest client sends: counted by reason, no reply, no state, no log flood.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24 ---  c0: stock client -> relay -> outside port
                             --- veth 10.71.1.0/24 ---  c1: the attacker, 10.71.1.2
    The relay repeats and forges packets from the client's own outside address.
"""
import os
import random
import socket
import time

from case import case, expect, wait_until
from traffic import Relay, Transfer
from vpn import INSIDE4, PORT

DATA_V2, DATA_V1, CONTROL_V1, ACK_V1, RESET_V2 = 9, 6, 4, 5, 7


class Attacker:
    """A stranger with a socket; knows what came back."""

    def __init__(self, t):
        self.ns = t.net.client()
        self.socket = self.ns.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((f'10.71.{self.ns.n}.1', PORT))
        self.socket.setblocking(False)

    def send(self, data):
        for _ in range(100):
            try:
                self.socket.send(data)
                return
            except (BlockingIOError, OSError):
                time.sleep(0.002)

    def replies(self):
        out = []
        while True:
            try:
                out.append(self.socket.recv(65536))
            except (BlockingIOError, ConnectionRefusedError):
                return out


def packet(opcode, body=b'', key_id=0):
    return bytes([opcode << 3 | key_id]) + body


def flipped(data, at):
    """One bit wrong; `at` counts from the end if negative."""
    out = bytearray(data)
    out[at] ^= 1
    return bytes(out)


def by_opcode(packets, opcode):
    return [x for x in packets if x and x[0] >> 3 == opcode]


def session(t, server, wrap):
    """A client behind a relay, with traffic of both kinds on record."""
    ns = t.net.client()
    relay = Relay(ns, (f'10.71.{ns.n}.1', PORT))
    client = t.client(ns=ns, remote=('127.0.0.1', relay.port), wrap=wrap)
    for size in (1, 300, 1200):
        client.ping(size, 5)
    return client, relay


def drops(server):
    """Reason -> packets, over all workers, the acceptor and both directions."""
    out = {}
    for labels, value in server.metrics().all('shardvpn_dropped_packets_total'):
        out[labels['reason']] = out.get(labels['reason'], 0) + value
    return out


def expect_counted(server, before, needs):
    """Every reason of `needs` rose by at least so much."""
    def missing():
        now = drops(server)
        rose = {r: now.get(r, 0) - before.get(r, 0) for r in needs}
        return {r: (rose[r], needs[r]) for r in needs if rose[r] < needs[r]}
    wait_until(lambda: not missing(), 6, lambda: f'reason: (counted, sent): {missing()}')


def expect_untouched(t, server, client, attacker, mark, sent):
    """No reply, tunnel alive, the log did not grow with what was sent."""
    client.ping(300, 5)
    server.expect_alive()
    expect(not attacker.replies(), 'the server answered a stranger')
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    lines = len(server.text(mark).splitlines())
    if t.setup.is_ours:
        expect(lines <= 60 + sent // 100, f'{lines} log lines for {sent} bad packets')
        wait_until(lambda: server.metrics().sum('shardvpn_peers') == 1, 4, 'state was left behind')


@case(both=True)
def hostile_control_packets(t):
    """malformed, truncated, forged and replayed control packets under tls-crypt"""
    server = t.server(wrap='crypt')
    client, relay = session(t, server, 'crypt')
    attacker, mark, rng = Attacker(t), server.mark(), random.Random(7)
    before = drops(server) if t.setup.is_ours else {}
    control = by_opcode(relay.up, CONTROL_V1) + by_opcode(relay.up, ACK_V1)
    resets = by_opcode(relay.up, RESET_V2)
    expect(control and resets, 'nothing was recorded')
    sent = 0
    for real in control[:6] + resets[:1]:
        for cut in range(0, len(real), 5):
            attacker.send(real[:cut])
        for at in range(1, len(real), 7):
            attacker.send(flipped(real, at))
            relay.send(flipped(real, at))
        sent += len(real) // 5 + 2 * (len(real) // 7)
    for opcode in range(32):
        for size in (0, 8, 13, 60, 1400):
            attacker.send(packet(opcode if opcode != DATA_V1 else 1, rng.randbytes(size)))
            sent += 1
    attacker.send(packet(RESET_V2, os.urandom(60000)))
    for real in control:
        relay.send(real)
    if t.setup.is_ours:
        expect_counted(server, before, {'control_hmac': 100, 'bad_opcode': 20, 'short': 5,
                                        'control_replay': len(control) // 2})
    expect_untouched(t, server, client, attacker, mark, sent)
    relay.stop()


@case(both=True)
def hostile_data_packets(t):
    """truncated, forged, replayed, oversized data packets, from the peer's address and from elsewhere"""
    server = t.server(wrap='crypt')
    client, relay = session(t, server, 'crypt')
    attacker, mark = Attacker(t), server.mark()
    before = drops(server) if t.setup.is_ours else {}
    data = by_opcode(relay.up, DATA_V2)
    expect(len(data) >= 15, f'{len(data)} data packets were recorded')
    head = data[0][:4]
    for real in data:
        relay.send(real)                                  # replayed from the right address
        attacker.send(real)                               # and from elsewhere: must not move the client
        relay.send(flipped(real[:4] + b'\x7f' + real[5:], -1))  # a new packet-id, a wrong tag
        attacker.send(flipped(real[:4] + b'\x7f' + real[5:], -1))
    for size in range(0, 25):
        relay.send(head + os.urandom(size))
    for n in range(50):
        attacker.send(packet(DATA_V2, (70000 + n).to_bytes(3, 'big') + os.urandom(100)))
        attacker.send(packet(DATA_V1, os.urandom(100)))
    relay.send(head + b'\x7f' + os.urandom(60000))
    relay.send(head + b'\x7f' + os.urandom(9000))
    sent = 4 * len(data) + 130
    if t.setup.is_ours:
        expect_counted(server, before, {'replay_duplicate': len(data) // 2, 'decrypt': len(data), 'unknown_peer': 50})
        floats = server.metrics().sum('shardvpn_peer_floats_total', result='accepted')
        expect(floats == 0, f'{floats} floats were accepted')
    expect_untouched(t, server, client, attacker, mark, sent)
    relay.stop()


@case()
def hostile_resets(t):
    """a flood of resets without wrapping: never more out than in, no state, a client gets in meanwhile"""
    server = t.server()
    attacker, mark = Attacker(t), server.mark()
    received = total = 0
    for n in range(2000):
        attacker.send(packet(RESET_V2, os.urandom(8) + bytes(5)))
        attacker.send(packet(CONTROL_V1, os.urandom(8) + b'\x01' + bytes(4) + os.urandom(8) + b'\0\0\0\1' + os.urandom(50)))
        total += 14
        if n % 100 == 99:
            received += sum(len(x) for x in attacker.replies())
    client = t.client()
    client.ping(100, 3)
    received += sum(len(x) for x in attacker.replies())
    if t.setup.is_ours:
        expect(received <= 3 * total, f'{received} bytes out for {total} bytes in')
        wait_until(lambda: server.metrics().sum('shardvpn_peers') == 1, 4, 'strangers have state')
        wait_until(lambda: server.metrics().sum('shardvpn_cookie_checks_total', result='rejected') >= 100, 4,
                   'forged cookies were not counted')
        lines = len(server.text(mark).splitlines())
        expect(lines <= 400, f'{lines} log lines')


@case(quick=False)
def flood_at_one_peer(t):
    """a stranger names a client's peer-id, thousands of times a second: the client's transfer goes on"""
    server = t.server()
    client, relay = session(t, server, 'plain')
    attacker = Attacker(t)
    head = by_opcode(relay.up, DATA_V2)[0][:4]
    move = Transfer(client.ns, t.net.srv, INSIDE4, 6 << 20, seconds=4)
    while move.is_running():
        for _ in range(50):
            attacker.send(head + os.urandom(80))
        time.sleep(0.005)
    move.wait(30)
    expect(not attacker.replies(), 'the server answered a stranger')
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    server.expect_alive()
    relay.stop()
