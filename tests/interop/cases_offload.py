# SPDX-License-Identifier: Apache-2.0
"""Super-packets: every combination of offloads, and inner flows with odd properties.

    c0 (stock client, 10.80.0.2)  --- veth 10.71.0.0/24 ---  srv (server, 10.80.0.1)  --- veth 10.90.0.0/24,
    c1 ...                                                                                fd90::/64 ---  lan
    with a shim: far (stock client) --- veth 10.73.0.0/24 --- c0 (shim that merges) --- veth --- srv
"""
import re
import socket

from case import case, expect
from cases_path import BadPath, check_both_ways
from datagrams import Datagrams
from strange import Strange
from traffic import Transfer
from vpn import INSIDE4, INSIDE6

LAN4, LAN6 = '10.90.0.2', 'fd90::2'
UDP_SEGMENT, SO_NO_CHECK, IPV6_DSTOPTS = 103, 11, 59
GROUP = 40
MASKS = ('tun-tso', 'tun-uso', 'udp-gro', 'udp-gso', 'steering-ebpf')
WORDS = ('tso', 'uso', 'udp-gro', 'udp-gso')


# --- combinations ---

def in_groups(source, sink, address, size, count=4 * GROUP):
    """Datagrams by UDP_SEGMENT, GROUP at a time."""
    return Datagrams(source, sink, address, [size] * count, 4000, [(socket.IPPROTO_UDP, UDP_SEGMENT, size)], group=GROUP)


def check_groups(t, client):
    for size in (64, 500, 1400):
        moves = [in_groups(t.net.srv, client.ns, client.address(), size),
                 in_groups(t.net.srv, client.ns, client.address(6), size),
                 in_groups(client.ns, t.net.srv, INSIDE4, size), in_groups(client.ns, t.net.srv, INSIDE6, size)]
        for m in moves:
            m.wait_all(rounds=3)


def run_combination(t, line):
    """Volume of all kinds from a client whose datagrams come merged."""
    t.server(line)
    path = BadPath(t, merge=1)
    check_both_ways(t, path.client, t.bytes(2, 20), 400, rounds=3)
    check_groups(t, path.client)
    path.client.ping(1472, 3)
    expect(path.stop()['merged'] > 0, 'the shim merged nothing')


def register_combinations():
    lines = [('none', 'offload none'), ('auto', 'offload auto')]
    lines += [(f'only_{w}', f'offload {w}') for w in WORDS]
    lines += [(f'without_{m}', f'disable-feature {m}') for m in MASKS]
    lines += [('all_masked', 'disable-feature ' + ','.join(MASKS))]
    for name, line in lines:
        def run(t, line=line):
            run_combination(t, line)
        run.__doc__ = f'{line}: TCP and UDP, single and grouped, both ways, both families'
        is_quick = name in ('none', 'all_masked')
        case(ours=True, quick=is_quick, name='offload_' + name.replace('-', '_'))(run)


register_combinations()


# --- odd flows ---

def with_lan(t, *lines):
    """A server that forwards, a client, and a namespace behind the server."""
    server = t.server('push "route 10.90.0.0 255.255.255.0"', 'push "route-ipv6 fd90::/64"', *lines)
    lan = t.lab.namespace('lan')
    t.lab.link(t.net.srv, lan, 'tolan', 'out')
    for ns, dev, n in ((t.net.srv, 'tolan', 1), (lan, 'out', 2)):
        ns.ip(f'addr add 10.90.0.{n}/24 dev {dev}')
        ns.ip(f'addr add fd90::{n}/64 dev {dev} nodad')
    lan.ip('route add 10.80.0.0/24 via 10.90.0.1')
    lan.ip('route add fd80::/64 via fd90::1')
    t.net.srv.run('sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1')
    return server, t.client(), lan


def everywhere(t, client, lan):
    """(source, sink, address): to and from the server and what is behind it, both families."""
    for other, their4, their6 in ((t.net.srv, INSIDE4, INSIDE6), (lan, LAN4, LAN6)):
        for theirs, family in ((their4, 4), (their6, 6)):
            yield client.ns, other, theirs
            yield other, client.ns, client.address(family)


def transfers(t, client, lan, total=1 << 20, **options):
    for source, sink, address in everywhere(t, client, lan):
        Transfer(source, sink, address, total, **options).wait(60)


@case()
def odd_tcp_segments(t):
    """TCP with a tiny MSS, with urgent data, without timestamps, without SACK"""
    _, client, lan = with_lan(t)
    transfers(t, client, lan, 200000, options=[(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 120)])
    transfers(t, client, lan, 1 << 19, options=[(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 537)])
    transfers(t, client, lan, 1 << 20, is_urgent=True)
    for name in ('tcp_timestamps', 'tcp_sack'):
        for ns in (client.ns, t.net.srv, lan):
            ns.run(f'sysctl -qw net.ipv4.{name}=0')
        transfers(t, client, lan)


@case(both=True)
def odd_tcp_ecn(t):
    """TCP with ECN, some packets marked on the way: the marks arrive and are answered, the bytes are right"""
    _, client, lan = with_lan(t)
    for ns in (client.ns, t.net.srv, lan):
        ns.run('sysctl -qw net.ipv4.tcp_ecn=1')
    t.net.srv.run('nft add table inet m')
    t.net.srv.run(['nft', 'add chain inet m f { type filter hook forward priority 0 ; }'])
    for family in ('ip', 'ip6'):
        t.net.srv.run(['nft', f'add rule inet m f {family} ecn 2 numgen random mod 10 == 0 {family} ecn set ce counter'])
    transfers(t, client, lan, 4 << 20)
    marked = re.findall(r'counter packets (\d+)', t.net.srv.run('nft list table inet m'))
    expect(all(int(x) > 0 for x in marked), f'packets marked: {marked}')
    for ns in (client.ns, lan):
        counts = dict(zip(*[x.split() for x in ns.read('netstat').splitlines()[2:4]]))
        expect(int(counts['InCEPkts']) > 0, f'{ns.name}: no mark arrived')


@case()
def odd_ip_headers(t):
    """IPv4 options and IPv6 destination options, with TCP and UDP"""
    _, client, lan = with_lan(t)
    for source, sink, address in everywhere(t, client, lan):
        option = ((socket.IPPROTO_IPV6, IPV6_DSTOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0])) if ':' in address else
                  (socket.IPPROTO_IP, socket.IP_OPTIONS, b'\x01\x01\x01\x01'))
        Transfer(source, sink, address, 1 << 20, options=[option]).wait(60)
        Datagrams(source, sink, address, [64, 500, 1200, 1200, 1200, 900] * 20, options=[option]).wait_all(rounds=3)


@case(quick=False)
def odd_datagrams(t):
    """UDP without checksum, in IP fragments up to 60,000 bytes, by UDP_SEGMENT to and from behind the server"""
    _, client, lan = with_lan(t)
    for source, sink, address in everywhere(t, client, lan):
        if ':' not in address:
            Datagrams(source, sink, address, [4, 500, 500, 500, 499, 1400, 1400, 1472] * 10,
                      options=[(socket.SOL_SOCKET, SO_NO_CHECK, 1)]).wait_all(rounds=3)
        Datagrams(source, sink, address, [1473, 3000, 8000, 20000, 40000, 60000] * 5, 100).wait_all(rounds=4)
        for size in (8, 100, 536, 1200, 1452):
            in_groups(source, sink, address, size).wait_all(rounds=3)


@case()
def odd_protocols(t):
    """large pings, GRE and a protocol nobody knows, both ways"""
    _, client, lan = with_lan(t)
    for size in (3000, 20000, 60000):
        client.ping(size, 3, to=LAN4)
        client.ping(size, 3, to=LAN6)
        for to in (client.address(), client.address(6)):
            out = lan.run(['ping', '-n', '-q', '-i', '0.05', '-c', '3', '-W', '2', '-s', str(size), to], check=False)
            expect(' 3 received' in out, f'ping -s {size} {to}: {out.strip()[-200:]}')
    for source, sink, address in everywhere(t, client, lan):
        for protocol in (47, 132, 253):
            Strange(source, sink, address, protocol).check()


@case(quick=False)
def odd_mixture(t):
    """many flows of all kinds at once, to and from the same client: they mix in every batch, nothing mixes up"""
    _, client, lan = with_lan(t)
    moves = []
    for source, sink, address in everywhere(t, client, lan):
        moves += [Transfer(source, sink, address, 2 << 20), Transfer(source, sink, address, 1 << 20, is_urgent=True)]
        moves.append(Datagrams(source, sink, address, [64, 500, 500, 500, 1200, 1452] * 150, 500))
    for m in moves:
        m.wait_all(rounds=4) if isinstance(m, Datagrams) else m.wait(60)


@case()
def odd_client_to_client(t):
    """client to client past the kernel: TCP, UDP, fragments and groups, both families"""
    t.server('client-to-client')
    a, b = t.client(cert='client1'), t.client(cert='client2')
    for source, sink in ((a, b), (b, a)):
        for family in (4, 6):
            to = sink.address(family)
            Transfer(source.ns, sink.ns, to, t.bytes(2, 20)).wait(60)
            Datagrams(source.ns, sink.ns, to, [4, 500, 1400, 1452, 9000] * 40).wait_all(rounds=3)
            in_groups(source.ns, sink.ns, to, 700).wait_all(rounds=3)
