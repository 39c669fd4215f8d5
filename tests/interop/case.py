# SPDX-License-Identifier: Apache-2.0
"""What a case is and what it works with."""
import kernel
import lab as lab_module
import vpn

CASES = {}


class Case:
    def __init__(self, run, name, quick, engines, seconds, ours):
        self.run, self.name, self.quick, self.engines = run, name, quick, engines
        self.seconds, self.ours = seconds, ours
        self.doc = (run.__doc__ or '').strip().split('\n')[0]


def case(quick=True, both=False, seconds=60, ours=False, name=None, engine=True):
    """Register a case. quick: in the quick run, too; both: there on both I/O engines (the full run
    always takes both); ours: makes no sense with the stock server; engine: False if the I/O engine
    cannot matter, once is enough; seconds: its deadline."""
    def register(run):
        n = name or run.__name__
        if n in CASES:
            raise ValueError(f'two cases are called {n}')
        CASES[n] = Case(run, n, quick, ('both' if both else 'one') if engine else 'any', seconds, ours)
        return run
    return register


class Test:
    """One run of one case: lab, PKI, set-up, and short names for what every case does."""

    def __init__(self, lab, pki, setup):
        self.lab, self.pki, self.setup = lab, pki, setup
        self.net = vpn.Net(lab)
        self.servers = []
        self.is_quick = setup.is_quick
        self.tolerated = set()  # what of the kernel's counts this case provokes: names, or words of our drops

    def server(self, *lines, **options):
        start = options.pop('start', True)
        server = vpn.Server(self.lab, self.pki, self.setup, options.pop('ns', self.net.srv), lines, **options)
        self.servers.append(server)
        if start:
            server.start()
            server.wait_ready()
        return server

    def finish(self):
        """What every case must leave behind: no packet with a wrong checksum anywhere, none that a tun device
        refused, servers that stop as they should, and no sanitizer's report in a log."""
        self._check_kernel()
        for server in self.servers:
            self._check_drops(server)
            if server.process and server.process.is_running():
                code = server.process.stop(20)
                expect(code == 0, f'{server.name}: exit code {code} after SIGTERM')
        for p in self.lab.processes:
            found = p.find(r'.*(Sanitizer|runtime error: |Assertion .* failed).*')
            expect(not found, f'{p.name}: {found and found.group(0)}')

    def _check_kernel(self):
        for ns in self.lab.namespaces:
            bad = kernel.bad_checksums(ns)
            expect(not bad or 'checksums' in self.tolerated, f'{ns.name}: packets with wrong checksums: {bad}')
        refused = kernel.refused_by_device(self.net.srv, 'tun0')
        expect(not refused or 'tun_write' in self.tolerated, f'the kernel refused packets of the server: {refused}')

    def _check_drops(self, server):
        """No tun write failed, as far as the server counted."""
        if not self.setup.is_ours or not server.has_metrics() or 'tun_write' in self.tolerated:
            return
        count = server.metrics().sum('shardvpn_dropped_packets_total', reason='tun_write')
        expect(count == 0, f'{server.name}: {count} packets could not be written to the tun device')

    def client(self, *words, **options):
        ns = options.pop('ns', None) or self.net.client()
        return vpn.Client(self.lab, self.pki, self.setup, ns, words, **options)

    def bytes(self, quick_mb, full_mb=100):
        return (quick_mb if self.is_quick else full_mb) << 20


expect, Failure, Skip, wait_until = (lab_module.expect, lab_module.Failure, lab_module.Skip, lab_module.wait_until)
