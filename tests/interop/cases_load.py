# SPDX-License-Identifier: Apache-2.0
"""Load: keys that change under it, packet-ids, firewall rules, bursts, one heavy user among light ones.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24 ---  c0 (stock client, 10.80.0.2)
                             --- veth 10.71.1.0/24 ---  c1 ...
"""
import time

import kernel
from capture import Capture, check_packet_ids
from case import case, expect, wait_until
from datagrams import Datagrams
from traffic import Transfer
from vpn import INSIDE4, PORT

UNFIT = ('decrypt', 'no_key', 'key_expired', 'replay_duplicate', 'replay_old', 'unknown_peer')
LOST_KEYS = r'Authenticate/Decrypt packet error|Decrypt error|keys are out of sync'


def drops(server, reason):
    return server.metrics().sum('shardvpn_dropped_packets_total', reason=reason)


def expect_no_unfit(t, server, client):
    """No packet met a missing, an old or a wrong key, on either side."""
    bad = client.process.find(rf'.*({LOST_KEYS}).*')
    expect(not bad, f'the client met a wrong key: {bad and bad.group(0)}')
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    if t.setup.is_ours:
        dropped = server.metrics().all('shardvpn_dropped_packets_total')
        unfit = [(labels, n) for labels, n in dropped if labels['reason'] in UNFIT and n]
        expect(not unfit, f'packets were dropped: {unfit}')


class Pump:
    """Transfers one after the other, until told to stop; each is compared."""

    def __init__(self, source, sink, address, each=32 << 20):
        self.make = lambda: Transfer(source, sink, address, each)
        self.done, self.now = 0, self.make()

    def poll(self):
        if not self.now.is_running():
            self.now.wait()
            self.done += 1
            self.now = self.make()

    def finish(self):
        self.now.wait(90)
        self.done += 1


@case(seconds=120)
def rekey_under_load(t):
    """a new key every few seconds while both directions are full: no packet is lost to it"""
    interval, seconds = (3, 8) if t.is_quick else (10, 45)
    server = t.server(f'reneg-sec {interval}')
    client = t.client()
    here = client.address()
    pumps = [Pump(client.ns, t.net.srv, INSIDE4), Pump(t.net.srv, client.ns, here)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for p in pumps:
            p.poll()
        time.sleep(0.02)
    for p in pumps:
        p.finish()
    expect(client.process.count('Control Channel: TLS') >= 3, 'fewer than two renegotiations were seen')
    expect_no_unfit(t, server, client)


@case(quick=False, seconds=120)
def rekey_loses_nothing(t):
    """a new key every few seconds, paced datagrams both ways: none is missing but what the kernel's queues lost"""
    interval, seconds = (3, 8) if t.is_quick else (10, 45)
    server = t.server(f'reneg-sec {interval}')
    client = t.client()
    moves = [Datagrams(client.ns, t.net.srv, INSIDE4, [300] * 1500 * seconds, 1500),
             Datagrams(t.net.srv, client.ns, client.address(), [300] * 1500 * seconds, 1500)]
    missing = [m.wait() for m in moves]
    known = kernel.lost_in_queues(t.net.srv) + kernel.lost_in_queues(client.ns)
    expect(sum(missing) <= known, f'{missing} datagrams are missing (up, down); queues lost {known}')
    expect(client.process.count('Control Channel: TLS') >= 3, 'fewer than two renegotiations were seen')
    expect_no_unfit(t, server, client)


def capture_all(t, clients):
    return [Capture(t.lab, t.net.srv, f'to{c.ns.n}', PORT) for c in clients]


@case(quick=False, seconds=90)
def packet_ids_are_unique(t):
    """four clients on all workers, keys that change: no (key, packet-id) twice on the wire, the server's in order"""
    t.server('reneg-sec 3', 'client-to-client')
    clients = [t.client(cert=f'client{n + 1}', data='v1' if n == 3 else 'v2') for n in range(4)]
    captures = capture_all(t, clients)
    seconds, total = (7, 4 << 20) if t.is_quick else (25, 60 << 20)
    moves = []
    for c, other in zip(clients, clients[1:] + clients[:1]):
        moves.append(Transfer(c.ns, t.net.srv, INSIDE4, total, seconds))
        moves.append(Transfer(t.net.srv, c.ns, c.address(), total, seconds))
        moves.append(Transfer(c.ns, other.ns, other.address(), total // 4, seconds))
    for m in moves:
        m.wait(seconds + 60)
    for c in captures:
        packets = c.stop()
        expect(len(packets) > 2000, f'{len(packets)} packets were captured on {c.dev}')
        keys = check_packet_ids(packets)
        for (is_down, *_), count in keys.items():
            expect(count >= 2, f'{count} keys in use on {c.dev}, {"down" if is_down else "up"}')


def firewall(ns, *rules):
    ns.run('nft add table inet t')
    ns.run(['nft', 'add chain inet t o { type filter hook output priority 0 ; }'])
    for r in rules:
        ns.run(['nft', f'add rule inet t o {r}'])


@case(both=True, ours=True)
def firewall_blocks_one_peer(t):
    """a rule of the local firewall makes sends to one client fail: only it suffers, and only while the rule is there"""
    server = t.server('keepalive 5 60', drop=['keepalive'])
    blocked, free = t.client(cert='client1'), t.client(cert='client2')
    mark = server.mark()
    firewall(t.net.srv, f'ip daddr 10.71.{blocked.ns.n}.2 udp sport {PORT} drop')
    before = drops(server, 'link_send')
    storm = Datagrams(t.net.srv, blocked.ns, blocked.address(), [500] * 3000, 3000)
    Transfer(free.ns, t.net.srv, INSIDE4, 8 << 20).wait(60)
    Transfer(t.net.srv, free.ns, free.address(), 8 << 20).wait(60)
    expect(storm.wait() == 3000, 'a blocked datagram arrived')
    wait_until(lambda: drops(server, 'link_send') - before >= 2000, 5,
               lambda: f'{drops(server, "link_send") - before} failed sends were counted')
    lines = server.text(mark).splitlines()
    expect(len(lines) <= 15, f'{len(lines)} log lines: {lines[:3]}')
    t.net.srv.run('nft delete table inet t')
    blocked.ping(500, 3)
    Transfer(t.net.srv, blocked.ns, blocked.address(), 8 << 20).wait(60)
    for c in (blocked, free):
        expect(c.process.count('Initialization Sequence Completed') == 1, f'{c.name} had to start again')


@case(quick=False)
def firewall_loses_at_random(t):
    """nft loses 2 % of the datagrams on the way to the clients, after they were sent: bytes arrive all the same"""
    t.server()
    client = t.client()
    client.ns.run('nft add table inet t')
    client.ns.run(['nft', 'add chain inet t i { type filter hook input priority 0 ; }'])
    client.ns.run(['nft', f'add rule inet t i udp sport {PORT} numgen random mod 100 < 2 drop'])
    Transfer(t.net.srv, client.ns, client.address(), t.bytes(4, 20)).wait(120)
    Transfer(client.ns, t.net.srv, INSIDE4, t.bytes(4, 20)).wait(120)


@case(seconds=90)
def heavy_user_among_light_ones(t):
    """one worker, one client with four bulk flows, eight with 50 small datagrams a second: those keep their share"""
    t.setup.workers = 1
    t.server()
    clients = [t.client(cert=f'client{n + 1}', wait=False) for n in range(9)]
    for c in clients:
        c.wait_connected()
    heavy, light = clients[0], clients[1:]
    seconds = 5 if t.is_quick else 20
    pumps = [Pump(t.net.srv, heavy.ns, heavy.address()) for _ in range(4)]
    moves = [Datagrams(t.net.srv, c.ns, c.address(), [200] * 50 * seconds, 50) for c in light]
    moves += [Datagrams(c.ns, t.net.srv, INSIDE4, [200] * 50 * seconds, 50) for c in light]
    while any(m.threads[1].is_alive() for m in moves):
        for p in pumps:
            p.poll()
        time.sleep(0.02)
    shares = [1 - m.wait() / len(m.sizes) for m in moves]
    for p in pumps:
        p.finish()
    expect(min(shares) >= 0.7, f'shares of the light ones: {[round(x, 2) for x in shares]}')
    expect(sum(p.done for p in pumps) > 0, 'the heavy one got nothing')
