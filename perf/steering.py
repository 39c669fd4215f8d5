#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs when packets from the tun device are read by another worker than their client's: server CPU a
packet with the eBPF program (nothing is handed over) and with the kernel's automatic steering.

    srv: source > tun0, server  --- veth 10.71.0.0/24 ---  c0: swarm, one socket a client

UDP of one size and rate to all clients in turn, from the server's side, in flows that nobody answers: the automatic
steering knows no better than to hash them.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, 'tests/support'), os.path.join(ROOT, 'perf')]
sys.dont_write_bytecode = True

import lab  # noqa: E402
import meter  # noqa: E402
import pki  # noqa: E402
import vpn  # noqa: E402

MODES = {'ebpf': [], 'automatic': ['disable-feature steering-ebpf']}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default=os.path.join(ROOT, 'build'), help='where server and perf are built')
    p.add_argument('--engine', choices=['auto', 'uring', 'epoll'], default='auto')
    p.add_argument('--workers', type=int, default=max(2, len(os.sched_getaffinity(0))))
    p.add_argument('--clients', type=int, default=10)
    p.add_argument('--flows', type=int, default=16, help='to each client')
    p.add_argument('--sizes', type=int, nargs='+', default=[64, 500, 1400])
    p.add_argument('--rates', type=int, nargs='+', default=[5000, 20000, 60000], help='packets a second, all together')
    p.add_argument('--seconds', type=int, default=3)
    p.add_argument('--runs', type=int, default=3)
    return p.parse_args()


def counts(server):
    m = server.metrics()
    return [m.sum('shardvpn_tun_read_packets_total'), m.sum('shardvpn_handoff_packets_total', direction='out')]


def run(world, a, server, ns, keys, size, rate):
    """CPU in us a packet, and the share of packets that was handed over."""
    swarm = world.start(ns, 'swarm', [
        f'{a.build}/perf/swarm', '--server', f'10.71.{ns.n}.1', '--ca', keys.path('ca.crt'), '--cert',
        keys.path('client1.crt'), '--key', keys.path('client1.key'), '--clients', str(a.clients), '--down', '--udp',
        '--size', str(size), '--seconds', str(a.seconds + 2), '--warmup', '0', '--threads', '1', '--quiet', '--json'])
    swarm.wait_log('^ready', 60)
    addresses = [x.split(',')[0] for x in server.status_addresses()]
    source = world.start(server.ns, 'source', [
        f'{a.build}/perf/source', '--to', f'{addresses[0]}-{addresses[-1]}', '--udp', '--size', str(size), '--flows',
        str(a.flows), '--burst', '1', '--no-gso', '--mbit', str(rate * size * 8 / 1e6), '--warmup', '0', '--seconds',
        str(a.seconds), '--quiet', '--json'])
    before, window = counts(server), meter.Window(server.pid)
    source.wait_exit(a.seconds + 20)
    spent, after = window.end(), counts(server)
    read, handed = (y - x for x, y in zip(before, after))
    swarm.wait_exit(a.seconds + 30)
    loss = json.loads(swarm.text().strip().splitlines()[-1])['data']['down']['loss_percent']
    return spent.process * 1e6 / read, handed / read, loss


class Server(vpn.Server):
    def status_addresses(self):
        """Inner addresses of the clients, in order."""
        def read():
            found = [x.split(',')[1] for x in self.status().splitlines() if x.startswith('ROUTING_TABLE')]
            return sorted((x for x in found if ':' not in x), key=lambda x: [int(n) for n in x.split('.')])
        return lab.wait_until(read, 10, 'the clients have no addresses', 0.2)


def measure(mode, a, size, rate):
    """In a network of its own, so that no earlier client stands in the way."""
    with tempfile.TemporaryDirectory(prefix='shardvpn-steering.') as top, lab.Lab('steering', top) as world:
        keys, net = pki.Pki(os.path.join(top, 'pki')), vpn.Net(world)
        setup = vpn.Setup(f'{a.build}/server/shardvpn', a.engine, workers=a.workers)
        server = Server(world, keys, setup, net.srv, [*MODES[mode], 'duplicate-cn', 'verb 1'], drop=['verb'])
        server.start()
        lab.wait_until(lambda: server.process.find(vpn.READY) or 'tun0' in net.srv.ip('-br link'), 15, 'no server')
        return run(world, a, server, net.client(), keys, size, rate)


def main():
    a = arguments()
    a.build = os.path.abspath(a.build)
    print('| UDP down | packets/s | us each, ebpf | automatic | handed over | extra us for each of these | loss % |\n'
          '|---|---|---|---|---|---|---|')
    for size in a.sizes:
        for rate in a.rates:
            got = {mode: [] for mode in MODES}
            for _ in range(a.runs):
                for mode, samples in got.items():
                    samples.append(measure(mode, a, size, rate))
            (cpu, share, loss), (cpu2, share2, loss2) = (
                [statistics.median(x) for x in zip(*got[mode])] for mode in ('ebpf', 'automatic'))
            each = f'{(cpu2 - cpu) / (share2 - share):.2f}' if share2 > share else '-'
            print(f'| {size} B | {rate} | {cpu:.2f} ({share:.1%} handed over) | {cpu2:.2f} | {share2:.0%} | {each} | '
                  f'{loss:.2f} / {loss2:.2f} |', flush=True)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except lab.Failure as failure:
        sys.exit(f'steering: {failure}')
    except KeyboardInterrupt:
        sys.exit(130)
