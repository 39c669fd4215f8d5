# SPDX-License-Identifier: Apache-2.0
"""The data channel: wrappings, ciphers, both data formats, both families outside, sizes, volume.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24, fd71:0::/64 ---  c0 (stock client, 10.80.0.2)
                             --- veth 10.71.1.0/24 ---  c1 ...
"""
import itertools
import re

from case import case, expect, wait_until
from traffic import Transfer
from vpn import INSIDE4, INSIDE6

SIZES = (1, 63, 64, 500, 1300, 1372, 1400, 1471, 1472)


def check_pings(client):
    for size in SIZES:
        client.ping(size)
    client.ping(3000)
    client.ping(56, to=INSIDE6)
    client.ping(1452, to=INSIDE6)


def check_transfers(t, client, quick_mb=20, full_mb=100):
    """Each way, one after the other."""
    total = t.bytes(quick_mb, full_mb)
    Transfer(client.ns, t.net.srv, INSIDE4, total).wait(120)
    Transfer(t.net.srv, client.ns, client.address(), total).wait(120)


def check_cipher(server, client, cipher):
    client.process.wait_log(f"Data Channel: cipher '{cipher}'", 5)
    expect(f'cipher {cipher}' in client.push_reply(), f'{cipher} was not pushed: {client.push_reply()}')
    server.expect_alive()


def connect(t, wrap, cipher, family, data):
    server = t.server(f'data-ciphers {cipher}', wrap=wrap, drop=['proto'] if family == 6 else [],
                      *([] if family == 4 else ['proto udp6']))
    client = t.client('--data-ciphers', cipher, wrap=wrap, family=family, data=data)
    check_cipher(server, client, cipher)
    ids = [x for x in client.push_reply() if x.startswith('peer-id')]
    expect(ids, f'no peer-id was pushed: {client.push_reply()}')
    return server, client


@case(both=True)
def plain_aes256_v2(t):
    """plain control channel, AES-256-GCM, IPv4, P_DATA_V2: pings of all sizes and volume"""
    _, client = connect(t, 'plain', 'AES-256-GCM', 4, 'v2')
    check_pings(client)
    check_transfers(t, client)


@case(both=True)
def auth_aes128_v1_ipv6(t):
    """tls-auth, AES-128-GCM, IPv6 outside, P_DATA_V1"""
    _, client = connect(t, 'auth', 'AES-128-GCM', 6, 'v1')
    check_pings(client)
    check_transfers(t, client)


@case(both=True)
def crypt_chacha_v2(t):
    """tls-crypt, CHACHA20-POLY1305, P_DATA_V2"""
    _, client = connect(t, 'crypt', 'CHACHA20-POLY1305', 4, 'v2')
    check_pings(client)
    check_transfers(t, client)


@case()
def auth256_aes192_ipv6(t):
    """tls-auth with auth SHA256, AES-192-GCM, IPv6 outside"""
    _, client = connect(t, 'auth256', 'AES-192-GCM', 6, 'v2')
    check_pings(client)
    check_transfers(t, client, 5)


def register_matrix():
    """The full run: every wrapping with every cipher, family and data format."""
    ciphers = ('AES-128-GCM', 'AES-192-GCM', 'AES-256-GCM', 'CHACHA20-POLY1305')
    for wrap, cipher, family, data in itertools.product(('plain', 'auth', 'crypt'), ciphers, (4, 6), ('v1', 'v2')):
        def run(t, wrap=wrap, cipher=cipher, family=family, data=data):
            _, client = connect(t, wrap, cipher, family, data)
            check_pings(client)
            check_transfers(t, client, 5, 20)
        run.__doc__ = f'{wrap}, {cipher}, IPv{family} outside, P_DATA_{data.upper()}'
        case(quick=False, name=f'matrix_{wrap}_{cipher.lower()}_ipv{family}_{data}')(run)


register_matrix()


@case(quick=False, seconds=120)
def transfer_100mb(t):
    """100 MB each way, over IPv4 and IPv6 inside, both ways at once"""
    t.server()
    client = t.client()
    total = t.bytes(100)
    check_transfers(t, client, 100)
    Transfer(client.ns, t.net.srv, INSIDE6, total).wait(120)
    pair = [Transfer(client.ns, t.net.srv, INSIDE4, total), Transfer(t.net.srv, client.ns, client.address(), total)]
    for x in pair:
        x.wait(120)


@case(both=True)
def four_clients_transfer(t):
    """four clients, transfers both ways at once: replies land on any queue and are handed over"""
    server = t.server()
    clients = [t.client(cert=f'client{n + 1}', wait=False) for n in range(4)]
    for c in clients:
        c.wait_connected()
    total = t.bytes(5, 50)
    moves = []
    for c in clients:
        moves.append(Transfer(c.ns, t.net.srv, INSIDE4, total))
        moves.append(Transfer(t.net.srv, c.ns, c.address(), total))
    for m in moves:
        m.wait(120)
    if t.setup.is_ours:
        drops = server.metrics().sum('shardvpn_dropped_packets_total', reason='decrypt')
        expect(drops == 0, f'{drops} packets of honest clients failed to open')


@case(quick=False)
def one_address_many_clients(t):
    """four clients behind one address, V1 and V2: the source port tells them apart"""
    t.server()
    ns = t.net.client()
    clients = [t.client(ns=ns, cert=f'client{n + 1}', dev=f'tun{n}', name=f'n{n}', data='v1' if n % 2 else 'v2',
                        wait=False) for n in range(4)]
    for c in clients:
        c.wait_connected()
    for c in clients:
        ns.ip(f'rule add from {c.address()} lookup {100 + clients.index(c)}')
        ns.ip(f'route add 10.80.0.0/24 dev {c.dev} table {100 + clients.index(c)}')
        c.ping(200, count=5, source=c.address())


@case(quick=False)
def small_path_mtu(t):
    """a path of 1280 bytes outside: what does not fit is fragmented or clamped, TCP gets through"""
    t.server()
    client = t.client(ns=t.net.client(mtu=1280))
    check_transfers(t, client, 5, 20)
    client.ping(1472)


@case(quick=False)
def mss_is_clamped(t):
    """mssfix bounds the MSS of connections through the tunnel"""
    t.server('mssfix 1000')
    client = t.client()
    move = Transfer(client.ns, t.net.srv, INSIDE4, 8 << 20, seconds=2)
    wait_until(lambda: move.got > 1 << 20, 10, 'the transfer did not start')
    found = [int(x) for x in re.findall(r' mss:(\d+)', t.net.srv.run('ss -tinH state established'))]
    move.wait()
    expect(found and max(found) < 1000, f'MSS of the connection: {found}')
