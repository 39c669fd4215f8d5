# SPDX-License-Identifier: Apache-2.0
"""swarm and source: many emulated clients, data both ways, nothing lost and everything counted.

    srv (server, 10.80.0.1; source; nft counts and drops)  --- veth 10.71.0.0/24 ---  c0 (swarm)
"""
import json
import os
import subprocess

import vpn
from case import Skip, case, expect
from vpn import INSIDE4

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLIENTS, MBIT = 20, 8
HEADERS = {'udp': 28, 'tcp': 40}  # a packet has them once, merged or not
SINK = '''table inet swarm { chain sink { type filter hook prerouting priority raw;
iifname "tun*" udp dport 9 counter drop; iifname "tun*" tcp dport 9 counter drop; }; }'''


def program(t, name):
    """A program of the build that the server under test is of."""
    path = os.path.join(os.path.dirname(os.path.dirname(t.setup.binary)), 'perf', name)
    if not os.path.exists(path):
        raise Skip(f'{path} is not there')
    return path


def arrived(ns, protocol):
    """Payload bytes that the sink has dropped."""
    rules = [x['rule'] for x in json.loads(ns.run(['nft', '-j', 'list', 'table', 'inet', 'swarm']))['nftables'] if 'rule' in x]
    counters = [e['counter'] for r in rules for e in r['expr'] if 'counter' in e]
    counter = counters[0 if protocol == 'udp' else 1]
    return counter['bytes'] - counter['packets'] * HEADERS[protocol]


def start_swarm(t, ns, *words):
    key = t.pki.path
    return t.lab.start(ns, 'swarm', [
        program(t, 'swarm'), '--server', f'10.71.{ns.n}.1', '--ca', key('ca.crt'), '--cert', key('client1.crt'),
        '--key', key('client1.key'), '--clients', str(CLIENTS), '--json', '--quiet', *' '.join(words).split()])


def result(process):
    code = process.wait_exit(40)
    expect(code == 0, f'{process.name}: exit code {code}\n{process.tail()}')
    return json.loads(process.text().splitlines()[-1])


def check_both_ways(t, ns, up, *how):
    """A paced second each way; the difference of the sink's counter is exactly what was sent."""
    before = arrived(t.net.srv, up)
    swarm = start_swarm(t, ns, f'--up-mbit {MBIT} --{up} --flows 2 --down --seconds 1.5 --warmup 0.3',
                        f'--ping {INSIDE4} --ping-interval-ms 50', *how)
    swarm.wait_log('^ready', 20)
    # Clients of a run before may still hold their addresses: all that could have been given out since get data.
    source = t.lab.start(t.net.srv, 'source', [program(t, 'source'), '--to', f'10.80.0.2-10.80.0.{2 * CLIENTS + 1}', '--json',
                                               '--mbit', str(2 * MBIT), f'--{up}', '--seconds', '1', '--quiet'])
    sent, r = result(source), result(swarm)
    expect(r['login'] == {**r['login'], 'connected': CLIENTS, 'failed': 0}, f'logins: {r["login"]}')
    total = r['total']
    expect(total['up_bytes'] > MBIT * 1e6 / 8 and arrived(t.net.srv, up) - before == total['up_bytes'],
           f'of {total["up_bytes"]} bytes {arrived(t.net.srv, up) - before} came through')
    expect(total['down_lost'] == 0 and total['down_packets'] > 0.4 * sent['packets'] > 0, f'down: {total} of {sent}')
    expect(r['data']['ping']['lost'] == 0 and r['data']['ping']['sent'] >= CLIENTS * 20, f'pings: {r["data"]["ping"]}')
    expect(r['data']['share']['up_min_percent'] > 90 and r['data']['share']['down_min_percent'] > 0,
           f'shares: {r["data"]["share"]}')
    return r


@case(ours=True)
def swarm_both_ways(t):
    """swarm and source: 20 clients, TCP and UDP, merged and single datagrams"""
    t.server('duplicate-cn', wrap='crypt')
    t.net.client()
    ns = t.lab.namespaces[-1]
    t.net.srv.run(['nft', SINK])
    crypt = f'--tls-crypt {t.pki.path("ta.key")}'
    check_both_ways(t, ns, 'tcp', crypt)
    check_both_ways(t, ns, 'udp', crypt, '--no-gso --no-gro --aead openssl --threads 1')
    r = result(start_swarm(t, ns, crypt, '--rekey-once --seconds 0.2'))
    expect(r['rekey'] == {'done': CLIENTS, 'failed': 0}, f'renegotiations: {r["rekey"]}')


@case(ours=True, engine=False)
def swarm_and_stock(t):
    """swarm against a stock server; a client that is refused is told so"""
    stock = vpn.Setup(t.setup.stock)
    server = vpn.Server(t.lab, t.pki, stock, t.net.srv, ['duplicate-cn', f'max-clients {CLIENTS}'], name='stock')
    server.start()
    server.wait_ready()
    ns = t.net.client()
    t.net.srv.run(['nft', SINK])
    r = result(start_swarm(t, ns, f'--up-mbit {MBIT} --seconds 1 --ping {INSIDE4}'))
    expect(r['login']['connected'] == CLIENTS and r['data']['ping']['received'] > 0, f'{r}')
    expect(arrived(t.net.srv, 'udp') == r['total']['up_bytes'], f'of {r["total"]} not all came through')


REFUSED = {
    'swarm': ['', '--server 10.71.0.1 --ca a --cert b', '--clients 0', '--clients 10001', '--seconds -1', '--size 15', '--burst 65',
              '--tcp --udp', '--up-mbit 1 --up-mbit-each 1', '--fit 1', '--up-mbit 5 --fit 1', '--rekey 4', '--aead aes',
              '--server localhost', '--target fd80::1', '--down now'],
    'source': ['', '--to 10.80.0.2-10.80.0.1', '--to fd80::1', '--to 10.80.0.2-', '--to 10.0.0.0-10.1.0.0', '--to 127.0.0.1 --dev nosuch0',
               '--to 127.0.0.1 --dev lo --tcp --udp', '--to 127.0.0.1 --dev lo --mbit 1 --fit', '--to 127.0.0.1 --dev lo --size 8901'],
}
NEEDED = {'swarm': '--server 10.71.0.1 --ca a --cert b --key c', 'source': ''}


@case(ours=True, engine=False)
def swarm_refuses_arguments(t):
    """command lines of swarm and source that make no sense are refused in words"""
    for name, lines in REFUSED.items():
        for line in lines:
            words = f'{NEEDED[name] if line and "--ca" not in line else ""} {line}'.split()
            p = subprocess.run([program(t, name), *words], capture_output=True, text=True, timeout=10, check=False)
            expect(p.returncode == 64 and p.stderr, f'{name} {words}: exit code {p.returncode}, {p.stderr!r}')
        p = subprocess.run([program(t, name), '--help'], capture_output=True, text=True, timeout=10, check=False)
        expect(p.returncode == 0 and p.stdout.startswith(f'usage: {name} '), f'{name} --help: {p.stdout[:100]}')
    p = subprocess.run([program(t, 'swarm'), *NEEDED['swarm'].split()], capture_output=True, text=True, timeout=10, check=False)
    expect(p.returncode == 2 and 'a' in p.stderr, f'files that are not there: exit code {p.returncode}, {p.stderr!r}')
