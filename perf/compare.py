#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stock openvpn and shardvpn servers in turn, in the same namespaces, with the same stock client.

    srv: server, iperf3 -s on 10.80.0.1  --- veth 10.71.0.0/24 ---  c0: stock client, iperf3 -c

Rows: TCP with one stream and with several, UDP with small datagrams, each in both directions. Of each
row: throughput, the server's CPU per gigabyte (or per datagram), the whole machine's, and the ratio.
Medians over the rounds; a Markdown table at the end. Debian's iperf3 runs all streams in one thread.
"""
import argparse
import json
import os
import statistics
import subprocess
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


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--binary', default=os.path.join(ROOT, 'build/server/shardvpn'))
    p.add_argument('--stock', default='/usr/sbin/openvpn')
    p.add_argument('--engine', choices=['auto', 'uring', 'epoll'], default='auto')
    p.add_argument('--aead', choices=['auto', 'openssl', 'ipsec-mb'], default='auto')
    p.add_argument('--cipher', default='AES-256-GCM')
    p.add_argument('--workers', type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('--seconds', type=int, default=5, help='of each measurement')
    p.add_argument('--streams', type=int, default=10)
    p.add_argument('--datagram', type=int, default=500, help='bytes of payload')
    p.add_argument('--udp-mbit', type=int, default=100, help='offered rate of datagrams')
    p.add_argument('--only', default='', help='rows whose name holds this')
    p.add_argument('--need', type=float, default=0, help='exit code 1 if a ratio of server CPU is below this')
    a = p.parse_args()
    a.binary, a.stock = os.path.abspath(a.binary), os.path.abspath(a.stock)
    return a


def rows(a):
    """(name, is_udp, words of iperf3)"""
    udp = ['-u', '-b', f'{a.udp_mbit}M', '-l', str(a.datagram)]
    many = f'-P {a.streams}'
    all_rows = [('TCP -P 1 up', False, []), ('TCP -P 1 down', False, ['-R']),
                (f'TCP {many} up', False, ['-P', str(a.streams)]), (f'TCP {many} down', False, ['-P', str(a.streams), '-R']),
                (f'UDP {a.datagram} B up', True, udp), (f'UDP {a.datagram} B down', True, udp + ['-R'])]
    return [r for r in all_rows if a.only in r[0]]


def iperf(client, words, seconds):
    argv = client.ns.argv(['iperf3', '-J', '-c', vpn.INSIDE4, '-t', str(seconds), *words])
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60, check=False)
    try:
        result = json.loads(p.stdout)
    except ValueError:
        raise lab.Failure(f'iperf3: {p.stdout[-300:]} {p.stderr[-300:]}') from None
    if 'error' in result:
        raise lab.Failure(f'iperf3: {result["error"]}')
    return result['end']


def measure(a, server, client, is_udp, words):
    """One row once: dict of Mbit/s, cost of the server and of the machine per unit."""
    cpu, machine = meter.process_seconds(server.pid), meter.machine_seconds()
    end = iperf(client, words, a.seconds)
    cpu, machine = meter.process_seconds(server.pid) - cpu, meter.machine_seconds() - machine
    if is_udp:
        took = end['sum']['packets'] - end['sum']['lost_packets']
        mbit = took * a.datagram * 8 / end['sum']['seconds'] / 1e6
        unit = took / 1e6
    else:
        mbit = end['sum_received']['bits_per_second'] / 1e6
        unit = end['sum_received']['bytes'] / 1e9
    if unit <= 0:
        raise lab.Failure('iperf3: nothing arrived')
    return {'mbit': mbit, 'server': cpu / unit, 'machine': machine / unit}


def listens(ns):
    return 'LISTEN' in ns.run('ss -tln sport = :5201')


def one_round(a, name, binary, keys, top, results):
    setup = vpn.Setup(binary, a.engine, a.aead, a.workers, stock=a.stock)
    with lab.Lab(name, top) as world:
        net = vpn.Net(world)
        server = vpn.Server(world, keys, setup, net.srv, [f'data-ciphers {a.cipher}', 'verb 3'], drop=['verb'])
        server.start()
        server.wait_ready()
        client = vpn.Client(world, keys, setup, net.client(), ['--data-ciphers', a.cipher])
        world.start(net.srv, 'iperf', ['iperf3', '-s'])
        lab.wait_until(lambda: listens(net.srv), 5, 'iperf3 -s does not listen')
        client.ping(100, 5)
        for row, is_udp, words in rows(a):
            got = measure(a, server, client, is_udp, words)
            results.setdefault((row, is_udp), {}).setdefault(name, []).append(got)
            unit = 'us a datagram' if is_udp else 's/GB'
            print(f'  {name:9} {row:16} {got["mbit"]:8.0f} Mbit/s   server {got["server"]:6.2f} {unit}', flush=True)
            time.sleep(0.3)
        server.expect_alive()


def table(a, results):
    """Print the medians; the smallest ratio of server CPU."""
    median = lambda rounds, key: statistics.median(x[key] for x in rounds)
    print('\n| row | Mbit/s stock | Mbit/s shardvpn | server CPU stock | server CPU shardvpn | ratio | '
          'machine CPU stock | machine CPU shardvpn | ratio |')
    print('|---|---|---|---|---|---|---|---|---|')
    worst = None
    for (row, is_udp), of in results.items():
        stock, ours = of['stock'], of['shardvpn']
        unit = 'us' if is_udp else 's/GB'
        ratio = median(stock, 'server') / max(median(ours, 'server'), 1e-9)
        whole = median(stock, 'machine') / max(median(ours, 'machine'), 1e-9)
        worst = ratio if worst is None else min(worst, ratio)
        print(f'| {row} | {median(stock, "mbit"):.0f} | {median(ours, "mbit"):.0f} | {median(stock, "server"):.2f} {unit} | '
              f'{median(ours, "server"):.2f} {unit} | {ratio:.2f}x | {median(stock, "machine"):.2f} {unit} | '
              f'{median(ours, "machine"):.2f} {unit} | {whole:.2f}x |')
    print(f'\n{a.cipher}, io-engine {a.engine}, aead-engine {a.aead}, {a.workers} workers, medians of {a.rounds} '
          f'rounds of {a.seconds} s; GB = 10^9 bytes of payload; UDP offered at {a.udp_mbit} Mbit/s')
    return worst


def main():
    a = arguments()
    results = {}
    with tempfile.TemporaryDirectory(prefix='shardvpn-compare.') as top:
        keys = pki.Pki(os.path.join(top, 'pki'))
        for n in range(a.rounds):
            print(f'round {n + 1} of {a.rounds}', flush=True)
            for name, binary in (('stock', a.stock), ('shardvpn', a.binary)):
                one_round(a, name, binary, keys, top, results)
    return 1 if table(a, results) < a.need else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except lab.Failure as failure:
        sys.exit(f'compare: {failure}')
    except KeyboardInterrupt:
        sys.exit(130)
