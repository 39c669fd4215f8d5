#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory and CPU of a server with many connected, silent clients (emulated with the control engine).

    srv: server  --- veth 10.71.0.0/24 ---  c0: swarm, one socket a client

Limits of the design: under 2 % of one core for 1,000 clients, at most 96 KiB resident for each, also
after each has renegotiated once; a worker without clients does not wake up. Exit code 1 if one is missed.
"""
import argparse
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, 'tests/support'), os.path.join(ROOT, 'perf')]
sys.dont_write_bytecode = True

import lab  # noqa: E402
import meter  # noqa: E402
import pki  # noqa: E402
import vpn  # noqa: E402

CPU_PERCENT_MAX = 2.0
CLIENT_KIB_MAX = 96
IDLE_WAKEUPS_A_SECOND_MAX = 0.5


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--binary', default=os.path.join(ROOT, 'build/server/shardvpn'))
    p.add_argument('--swarm', default=os.path.join(ROOT, 'build/perf/swarm'))
    p.add_argument('--engine', choices=['auto', 'uring', 'epoll'], default='auto')
    p.add_argument('--clients', type=int, default=1000)
    p.add_argument('--seconds', type=int, default=20)
    p.add_argument('--workers', type=int, default=len(os.sched_getaffinity(0)))
    a = p.parse_args()
    a.binary, a.swarm = os.path.abspath(a.binary), os.path.abspath(a.swarm)
    return a


class Verdict:
    def __init__(self):
        self.is_good = True

    def line(self, text, value, limit, unit):
        good = value <= limit
        self.is_good = self.is_good and good
        print(f'{"ok  " if good else "MISS"} {text}: {value:.2f} {unit} (at most {limit} {unit})', flush=True)


def wakeups_of_workers(server, seconds):
    """The largest number of wake-ups a second among the workers' threads."""
    before = meter.thread_switches(server.pid)
    time.sleep(seconds)
    after = meter.thread_switches(server.pid)
    rates = {k: (after[k] - before.get(k, 0)) / seconds for k in after if 'worker' in k}
    lab.expect(rates, f'no thread is called worker: {sorted(after)}')
    print('     wake-ups a second: ' + ', '.join(f'{k} {v:.2f}' for k, v in sorted(rates.items())))
    return max(rates.values())


def check_load(server, a, empty, verdict, when):
    cpu = meter.process_seconds(server.pid)
    time.sleep(a.seconds)
    cpu = meter.process_seconds(server.pid) - cpu
    each = (meter.resident_bytes(server.pid) - empty) / 1024 / a.clients
    verdict.line(f'{when}: CPU of one core', 100 * cpu / a.seconds, CPU_PERCENT_MAX * a.clients / 1000, '%')
    verdict.line(f'{when}: resident, for each client', each, CLIENT_KIB_MAX, 'KiB')


def main():
    a = arguments()
    verdict = Verdict()
    with tempfile.TemporaryDirectory(prefix='shardvpn-idle.') as top, lab.Lab('idle', top) as world:
        keys = pki.Pki(os.path.join(top, 'pki'))
        net = vpn.Net(world)
        lines = ['duplicate-cn', f'max-clients {a.clients + 10}', 'server 10.80.0.0 255.255.0.0', 'keepalive 10 60', 'verb 1']
        server = vpn.Server(world, keys, vpn.Setup(a.binary, a.engine, workers=a.workers), net.srv, lines,
                            drop=['server', 'keepalive', 'verb', 'status'], wrap='crypt')
        server.start()
        lab.wait_until(lambda: server.process.find(vpn.READY) or os.path.exists(f'/proc/{server.pid}') and
                       'tun0' in net.srv.ip('-br link'), 15, 'the server is not ready')
        time.sleep(14)  # until the kernel has said what it says by itself on a new device (router solicitations)
        verdict.line('no client: wake-ups of the busiest worker', wakeups_of_workers(server, 6),
                     IDLE_WAKEUPS_A_SECOND_MAX, 'a second')
        empty = meter.resident_bytes(server.pid)
        ns = net.client()
        swarm = world.start(ns, 'swarm', [
            a.swarm, '--server', f'10.71.{ns.n}.1', '--port', str(vpn.PORT), '--ca', keys.path('ca.crt'), '--cert',
            keys.path('client1.crt'), '--key', keys.path('client1.key'), '--tls-crypt', keys.path('ta.key'),
            '--clients', str(a.clients), '--seconds', str(a.seconds + 5), '--keepalive', '10', '--rekey-once', '--threads', '1'])
        swarm.wait_log(r'^ready: ', 180)
        swarm.wait_log(r'^renegotiated: ', 240)
        time.sleep(2)
        check_load(server, a, empty, verdict, f'{a.clients} clients, each renegotiated once')
        code = swarm.wait_exit(a.seconds + 30)
        print('     ' + ', '.join(swarm.text().splitlines()[-3:]))
        lab.expect(code == 0, 'clients were lost')
        server.expect_alive()
    return 0 if verdict.is_good else 1


if __name__ == '__main__':
    try:
        sys.exit(main())
    except lab.Failure as failure:
        sys.exit(f'idle: {failure}')
    except KeyboardInterrupt:
        sys.exit(130)
