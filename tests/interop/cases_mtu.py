# SPDX-License-Identifier: Apache-2.0
"""A path whose MTU shrinks while it is used, at a router that says so.

    srv (server, 10.80.0.1)  --- 10.71.0.0/24, fd71:0::/64, MTU 1500 ---  c0 (router)
                                 --- 10.73.0.0/24, fd73::/64, MTU 1500, then 1400, then 1300 ---  far (stock client)
"""
from case import case, expect, wait_until
from datagrams import Datagrams
from kernel import protocol_counts
from traffic import Transfer
from vpn import INSIDE4, PORT

SIZES = (64, 500, 1200, 1260, 1340, 1372, 1400, 1472)
SHRUNK = 'the path takes packets of 1400 bytes now, not 1500'
ROUTER4, ROUTER6 = '10.71.0.1', 'fd71:0::1'


class NarrowPath:
    """The router, and a client behind it that reaches the server over `family`."""

    def __init__(self, t, family, lines=()):
        self.t, self.family = t, family
        proto6 = {'drop': ['proto']} if family == 6 else {}
        self.server = t.server(*lines, *(['proto udp6'] if family == 6 else []), **proto6)
        self.router, self.far = t.net.client(), t.lab.namespace('far')
        t.lab.link(self.router, self.far, 'tofar', 'out')
        self.router.run('sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1')
        for ns, dev, host in ((self.router, 'tofar', 1), (self.far, 'out', 2)):
            ns.ip(f'addr add 10.73.0.{host}/24 dev {dev}')
            ns.ip(f'addr add fd73::{host}/64 dev {dev} nodad')
        self.far.ip('route add 10.71.0.0/24 via 10.73.0.1')
        self.far.ip('route add fd71::/64 via fd73::1')
        t.net.srv.ip('route add 10.73.0.0/24 via 10.71.0.2')
        t.net.srv.ip('route add fd73::/64 via fd71:0::2')
        self.client = t.client(ns=self.far, remote=(ROUTER4 if family == 4 else ROUTER6, PORT), family=family)

    def shrink(self, mtu):
        self.router.ip(f'link set tofar mtu {mtu}')
        self.far.ip(f'link set out mtu {mtu}')

    def fragments(self):
        """Datagrams that the server's kernel made fragments of, so far."""
        counts = protocol_counts(self.t.net.srv)
        return counts['Ip FragOKs' if self.family == 4 else 'Ip6FragOKs']

    def transfer_down(self, megabytes=3):
        Transfer(self.t.net.srv, self.far, self.client.address(), megabytes << 20).wait(60)

    def transfer_both(self):
        self.transfer_down()
        Transfer(self.far, self.t.net.srv, INSIDE4, 3 << 20).wait(60)

    def check_datagrams(self):
        sizes = SIZES * (8 if self.t.is_quick else 40)
        for d in (Datagrams(self.t.net.srv, self.far, self.client.address(), sizes),
                  Datagrams(self.far, self.t.net.srv, INSIDE4, sizes)):
            d.wait_all(rounds=4)


def run_shrinking(t, family, lines=(), learns=True):
    path = NarrowPath(t, family, lines)
    path.transfer_both()
    expect(path.fragments() == 0, 'there are fragments on a path of 1500 bytes')
    before = 1500
    for mtu in (1400, 1300):
        mark = path.server.mark()
        path.shrink(mtu)
        path.transfer_both()
        path.check_datagrams()
        if learns:
            path.server.wait_log(f'the path takes packets of {mtu} bytes now, not {before}', 15, mark)
            # A new connection is clamped to it, so that nothing of it is fragmented.
            made = path.fragments()
            path.transfer_down()
            expect(path.fragments() - made < 20, f'{path.fragments() - made} fragmented datagrams on {mtu} bytes')
        before = mtu
    path.server.expect_alive()


@case(both=True, ours=True)
def mtu_shrinks_on_the_way(t):
    """the path shrinks from 1500 to 1400 to 1300 bytes under load: the server learns it, and clamps to it"""
    run_shrinking(t, 4)


@case(ours=True)
def mtu_shrinks_on_the_way_ipv6(t):
    """the same over IPv6"""
    run_shrinking(t, 6)


@case(ours=True)
def mtu_shrinks_without_offload(t):
    """the same with all offloads off: the kernel fragments"""
    run_shrinking(t, 4, ['offload none'], learns=False)


@case(ours=True, quick=False)
def mtu_shrinks_without_offload_ipv6(t):
    """the same over IPv6 with all offloads off"""
    run_shrinking(t, 6, ['offload none'], learns=False)


def pings_down(path, size, count=1):
    """What pings from the server's side say; they must not be fragmented."""
    return path.t.net.srv.run(['ping', '-n', '-M', 'do', '-i', '0.2', '-c', str(count), '-W', '1', '-s', str(size),
                               path.client.address()], check=False)


def run_undivided(t, family):
    path = NarrowPath(t, family, ['mtu-disc yes'])
    path.transfer_both()
    path.shrink(1400)
    mark = path.server.mark()
    too_long = 1400 - (28 if family == 4 else 48) - 24 - 28 + 1
    # The first ones teach the kernel of the server, the next the server.
    wait_until(lambda: pings_down(path, too_long) and path.server.process.find(SHRUNK, mark), 15,
               'the server does not notice that its datagrams do not pass')
    out = pings_down(path, too_long - 1, 3)
    expect(' 0% packet loss' in out, f'ping of what fits: {out[-300:]}')
    path.transfer_both()
    expect(path.fragments() == 0, f'{path.fragments()} datagrams were fragmented')
    dropped = path.server.metrics().sum('shardvpn_dropped_packets_total', reason='link_send')
    expect(dropped > 0, 'nothing was counted as too big')


@case(both=True, ours=True)
def mtu_disc_yes(t):
    """mtu-disc yes: nothing is fragmented, new connections are clamped to what fits"""
    run_undivided(t, 4)


@case(ours=True, quick=False)
def mtu_disc_yes_ipv6(t):
    """mtu-disc yes over IPv6"""
    run_undivided(t, 6)
