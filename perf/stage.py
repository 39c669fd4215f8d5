# SPDX-License-Identifier: Apache-2.0
"""One contestant ready to be loaded, in namespaces of its own:

    srv: server, iperf3 -s  --- veth 10.71.0.0/24 ---  c0: stock client, iperf3 -c, prober
                            --- veth 10.71.1.0/24 ---  c1: swarm
"""
import json
import re
import socket

import lab
import merging
import vpn

IPERF_PORTS = range(5201, 5205)
MANAGEMENT_PORT = 7505
USUAL = ['verb 3', 'duplicate-cn', 'max-clients 12000', 'server 10.80.0.0 255.255.0.0', 'keepalive 10 60']

SINK = '''
table inet swarm {
  chain sink {
    type filter hook prerouting priority raw;
    iifname "tun*" udp dport 9 counter drop
    iifname "tun*" tcp dport 9 counter drop
  }
}
'''


class Stage:
    """Use as a context manager."""

    def __init__(self, bench, contestant, lines=(), drop=(), workers=None, argv_prefix=()):
        self.bench, self.contestant = bench, contestant
        self.world = lab.Lab(contestant.key, bench.top)
        self.net = vpn.Net(self.world)
        self.srv = self.net.srv
        self.client_ns, self.swarm_ns = self.net.client(), self.net.client()
        self.server, self.client, self.is_merging = None, None, False
        is_stock = contestant.kind == 'stock'
        self.setup = vpn.Setup(bench.stock if is_stock else bench.binary, contestant.engine, contestant.aead,
                               workers or bench.workers, stock=bench.stock)
        try:
            self._start(list(lines), set(drop), argv_prefix)
        except BaseException:
            self.world.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def close(self):
        self.world.close()

    def _start(self, lines, drop, argv_prefix):
        if self.has_tunnel:
            usual = [x for x in USUAL if x.split()[0] not in drop]
            lines = [*usual, f'data-ciphers {self.bench.cipher}', *lines]
            if not self.setup.is_ours:
                lines.append(f'management 127.0.0.1 {MANAGEMENT_PORT}')
            self.server = vpn.Server(self.world, self.bench.keys, self.setup, self.srv, lines,
                                     drop=['verb', 'server', 'keepalive', 'status'],
                                     argv_prefix=argv_prefix)
            self.server.start()
            self.server.wait_ready()
        rules = self.world.write('sink.nft', SINK)
        self.srv.run(['nft', '-f', rules])
        for port in IPERF_PORTS:
            self.world.start(self.srv, f'iperf{port}', ['iperf3', '-s', '-p', str(port)])
        lab.wait_until(lambda: self.srv.run('ss -Htln').count('LISTEN') >= len(IPERF_PORTS), 5, 'iperf3 -s does not listen')

    @property
    def has_tunnel(self):
        return self.contestant.kind != 'bare'

    @property
    def pid(self):
        return self.server.pid if self.server else None

    @property
    def target(self):
        """The server's address on the way that is measured."""
        return vpn.INSIDE4 if self.has_tunnel else '10.71.0.1'

    @property
    def device(self):
        return 'tun0' if self.has_tunnel else 'out'

    def need_client(self):
        """Connect the stock client, once."""
        if self.has_tunnel and not self.client:
            self.client = vpn.Client(self.world, self.bench.keys, self.setup, self.client_ns,
                                     ['--data-ciphers', self.bench.cipher])
            self.client.ping(100, 2)

    def set_merging(self, is_on):
        if is_on == self.is_merging:
            return
        for i, ns in enumerate((self.client_ns, self.swarm_ns)):
            merging.set_merging(self.srv, f'to{i}', is_on)
            merging.set_merging(ns, 'out', is_on)
        self.is_merging = is_on

    def expect_alive(self):
        if self.server:
            self.server.expect_alive()

    def scrape(self):
        """Samples of our metrics; None from a server that has none."""
        return self.server.metrics() if self.server and self.setup.is_ours else None

    def addresses(self):
        """The clients' IPv4 addresses inside."""
        if self.setup.is_ours:
            text = vpn.http_get(self.srv, '/metrics/peers')
            return set(re.findall(r'virtual_address="(10[0-9.]+)"', text))
        return set(re.findall(r'^CLIENT_LIST,[^,]*,[^,]*,(10[0-9.]+),', self._management_status(), re.M))

    def _management_status(self):
        """The stock daemon's table, at once: its file lags a second."""
        with self.srv.socket() as s:
            s.settimeout(10)
            s.connect(('127.0.0.1', MANAGEMENT_PORT))
            s.sendall(b'status 2\n')
            text = b''
            while b'\nEND' not in text:
                piece = s.recv(1 << 16)
                if not piece:
                    raise lab.Failure('the management socket was closed')
                text += piece
            s.shutdown(socket.SHUT_RDWR)
        return text.decode('ascii', 'replace')

    def sink_counts(self):
        """(packets, bytes) of UDP and TCP that reached the inside of the server on the swarm's port."""
        rules = json.loads(self.srv.run(['nft', '-j', 'list', 'table', 'inet', 'swarm']))['nftables']
        found = [e['counter'] for r in rules if 'rule' in r for e in r['rule']['expr'] if 'counter' in e]
        return {name: (c['packets'], c['bytes']) for name, c in zip(('udp', 'tcp'), found)}

    def device_overflows(self, ns):
        """Packets that did not get into the queue of a device of `ns`: of a tun device that is not read soon enough,
        of a veth whose other end is not."""
        rows = (x.partition(':')[2].split() for x in ns.run('cat /proc/net/dev').splitlines()[2:])
        return sum(int(numbers[11]) for numbers in rows)

    def udp_errors(self):
        """Datagrams that the kernel dropped in the server's namespace because a receive buffer was full."""
        names, values = (x.split() for x in self.srv.run('cat /proc/net/snmp').splitlines() if x.startswith('Udp:'))
        return int(dict(zip(names, values))['RcvbufErrors'])
