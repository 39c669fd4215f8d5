# SPDX-License-Identifier: Apache-2.0
"""What README promises: quickstart.sh serves, its profile works as it is, --nat opens the way and closes
it again, --demo passes.

    c0 (stock client)  --- veth 10.71.0.0/24 ---  srv (quickstart.sh)  --- veth 198.51.100.0/24 ---  lan
"""
import os
import re
import signal

from case import case, expect, wait_until

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), 'quickstart.sh')
INSIDE = '10.8.0.1'


def start(t, *words):
    ns = t.net.client()
    run = t.lab.path('run')
    server = t.lab.start(t.net.srv, 'quickstart', [SCRIPT, '--server', t.setup.binary, '--run', run, *words])
    server.wait_log('Initialization Sequence Completed', 20)
    client = t.lab.start(ns, 'client', [t.setup.stock, '--config', os.path.join(run, 'client.ovpn'), '--disable-dco'])
    client.wait_log('Initialization Sequence Completed', 20)
    return run, server, ns


def stop(server):
    os.killpg(server.pid, signal.SIGINT)
    expect(server.wait_exit(15) == 0, f'exit code {server.popen.returncode} after Ctrl-C')


@case(ours=True, engine=False)
def quickstart_profile(t):
    """quickstart.sh: the printed profile connects as it is; files are kept, private, and used again"""
    run, server, ns = start(t)
    ns.run(['ping', '-c', '1', '-W', '2', INSIDE])
    printed = server.text()
    for wanted in (os.path.join(run, 'client.ovpn'), INSIDE, 'iperf3 -c', 'http://127.0.0.1:9176/metrics', '10.71.0.1'):
        expect(wanted in printed, f'{wanted} was not printed:\n{printed}')
    expect(os.stat(run).st_mode & 0o777 == 0o700, f'mode of run: {os.stat(run).st_mode:o}')
    expect('table' not in t.net.srv.run('nft list ruleset'), 'the firewall was touched')
    stop(server)
    before = open(os.path.join(run, 'pki/ca.crt'), encoding='ascii').read()
    again = t.lab.start(t.net.srv, 'again', server.popen.args)
    again.wait_log('Initialization Sequence Completed', 20)
    expect(open(os.path.join(run, 'pki/ca.crt'), encoding='ascii').read() == before, 'the PKI was not kept')
    stop(again)


@case(ours=True, engine=False, quick=False)
def quickstart_nat(t):
    """quickstart.sh --nat: a client reaches what is behind the server; afterwards all is as it was"""
    lan = t.lab.namespace('lan')
    t.lab.link(t.net.srv, lan, 'tolan', 'out')
    t.net.srv.ip('addr add 198.51.100.1/24 dev tolan')
    lan.ip('addr add 198.51.100.2/24 dev out')
    _, server, ns = start(t, '--nat', '--remote', '10.71.0.1')
    wait_until(lambda: ' 0 received' not in ns.run('ping -c 1 -W 1 198.51.100.2', check=False), 10,
               'no way to the network behind the server')
    stop(server)
    expect('table' not in t.net.srv.run('nft list ruleset'), 'rules of the firewall were left behind')
    expect(t.net.srv.run('sysctl -n net.ipv4.ip_forward').strip() == '0', 'forwarding was left on')


@case(ours=True, engine=False, quick=False, seconds=60)
def quickstart_demo(t):
    """quickstart.sh --demo passes, tells throughput and shares, leaves no namespace"""
    before = t.net.srv.run('ip netns list')
    p = t.lab.start(t.net.srv, 'demo', [SCRIPT, '--demo', '--server', t.setup.binary, '--run', t.lab.path('run')])
    expect(p.wait_exit(50) == 0, p.text()[-800:])
    for wanted in (r'to the server: \d+ Mbit/s', r'to the clients: \d+ Mbit/s', r'worker \S+ carried \d+ %', 'demo passed'):
        expect(re.search(wanted, p.text()), f'{wanted} was not printed:\n{p.text()}')
    name = f'shardvpn-{p.pid}-'
    expect(name not in t.net.srv.run('ip netns list'), f'namespaces were left behind; before: {before}')
