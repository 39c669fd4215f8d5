# SPDX-License-Identifier: Apache-2.0
"""The same client against the stock server and ours: PUSH_REPLY, log lines and status files must be
equal once addresses outside, ports, times and counters are masked.

    A: srv (stock)  --- veth 10.71.0.0/24 ---  c0 (stock client)
    B: srv (ours)   --- veth 10.71.0.0/24 ---  c0 (the same client)
"""
import os
import re
import signal

import vpn
from case import case, expect, wait_until
from lab import Lab

# The lines that tools read (operations.md, section 1.2), without their prefix.
SERVER_LINES = (
    r'VERIFY OK: depth=', r'VERIFY ERROR: depth=', r'VERIFY EKU OK', r'VERIFY EKU ERROR',
    r'TLS Error: TLS handshake failed', r'TLS Error: TLS object -> incoming plaintext read error',
    r'Peer Connection Initiated with', r'MULTI_sva: pool returned', r'MULTI: Learn: ',
    r'MULTI: primary virtual IP', r'SENT CONTROL \[', r'SIGTERM\[soft,', r'SIGUSR1\[soft,',
    r'peer info: IV_', r'Initialization Sequence Completed', r'MULTI: new connection by client',
    r'MULTI: no free --ifconfig-pool', r'MULTI: new incoming connection would exceed',
    r'Inactivity timeout \(--ping-restart\)')
CLIENT_LINES = (
    r'VERIFY', r'Peer Connection Initiated', r'PUSH: Received', r'AUTH_FAILED', r'AUTH: Received', r'TLS Error',
    r'OpenSSL: ', r'Control Channel: TLS', r'Data Channel', r'Initialization Sequence Completed', r'OPTIONS ',
    r'SIGUSR1\[', r'SIGTERM\[', r'net_(addr|iface|route)', r'WARNING: .*used inconsistently', r'Connection reset',
    r'TLS_ERROR', r'Timers:', r'Outgoing dynamic tls-crypt', r'Incoming dynamic tls-crypt', r'Halt|RESTART')


def mask_ports(line):
    """Ports of addresses outside. Of IPv6, stock gives one after [AF_INET6] only."""
    line = re.sub(r'(10\.71\.\d+\.\d+):\d+', r'\1:PORT', line)
    line = re.sub(r'(\[AF_INET6\]fd71[0-9a-f:]*):\d+', r'\1:PORT', line)
    # Deliberate difference: the prefix of our log lines has the port of an IPv6 client too.
    return re.sub(r'\[(fd71[0-9a-f:]*)\]:\d+', r'\1', line)


def mask(line):
    """Without what may differ: time stamps, ports, outside peers, sessions, sizes."""
    line = re.sub(r'\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( us=\d+)?', 'TIME', line)
    line = re.sub(r'^TIME ', '', line)
    line = mask_ports(line)
    line = re.sub(r'\bpeer-id \d+', 'peer-id N', line)
    line = re.sub(r'serial=\d+', 'serial=N', line)
    line = re.sub(r'(sid=)[0-9a-f ]+', r'\1SID', line)
    line = re.sub(r'OpenSSL: error:[0-9A-F]+', 'OpenSSL: error:CODE', line)
    return re.sub(r'peer-id: \d+', 'peer-id: N', line).strip()


def lines_of(text, patterns):
    wanted = re.compile('|'.join(patterns))
    return [mask(x) for x in text.splitlines() if wanted.search(x)]


def mask_status(text, version):
    """Times, counters, ports, the version's tail and the peer-id are masked; columns and order stay."""
    out = []
    for line in text.splitlines():
        line = re.sub(r'(OpenVPN \d+\.\d+\.\d+ \S+) .*', r'\1 ...', line)
        line = re.sub(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d', 'TIME', line)
        line = re.sub(r'\b1[0-9]{9}\b', 'UNIX', line)
        line = mask_ports(line)
        sep = '\t' if version == 3 else ','
        words = line.split(sep)
        if version == 1 and len(words) == 5 and words[1].startswith('10.71.'):
            words[2:4] = ['IN', 'OUT']
        if words[0] == 'CLIENT_LIST':
            words[5:7] = ['IN', 'OUT']
            words[11] = 'PEER'
        out.append(sep.join(words))
    return sort_routes(out, version)


def sort_routes(lines, version):
    """Stock writes the routing table in the order of a hash that starts anew each time."""
    def is_route(line):
        return line.startswith('ROUTING_TABLE') if version > 1 else re.match(r'[0-9a-f.:/]+C?,\w+,\S+,TIME$', line)
    routes = sorted(x for x in lines if is_route(x))
    return [routes.pop(0) if is_route(x) else x for x in lines]


def compare(what, stock, ours):
    if stock == ours:
        return []
    only_stock = [x for x in stock if x not in ours]
    only_ours = [x for x in ours if x not in stock]
    faults = [f'{what}: only stock: {x}' for x in only_stock] + [f'{what}: only ours:  {x}' for x in only_ours]
    at = next((n for n, (x, y) in enumerate(zip(stock, ours)) if x != y), min(len(stock), len(ours)))
    return faults or [f'{what}: order or number differ from line {at + 1} on:\n      stock {stock[at:at + 4]}\n'
                      f'      ours  {ours[at:at + 4]}']


def on_both(t, scenario):
    """Run `scenario(test)` against stock and ours; every difference is told at once."""
    t.setup.need_ours()
    results = []
    for n, binary in enumerate((t.setup.stock, t.setup.binary)):
        setup = vpn.Setup(binary, t.setup.engine, t.setup.aead, t.setup.workers, True, t.setup.prefix if n else (),
                          t.setup.stock)
        lab = Lab(['stock', 'ours'][n], t.lab.dir)
        t.lab.cleanups.append(lab.close)
        here = type(t)(lab, t.pki, setup)
        try:
            results.append(scenario(here))
        except Exception:
            print(lab.tails(40))
            raise
        lab.close(keep=True)
    faults = []
    for what in results[0]:
        faults += compare(what, results[0][what], results[1][what])
    expect(not faults, 'differs from stock:\n    ' + '\n    '.join(faults))


def connected(t, lines, words=(), drop=(), wrap='plain', family=4, version=2):
    """One client connects, pings, leaves: everything it and the operator could see."""
    server = t.server(f'status-version {version}', *lines, drop=['status-version', *drop], wrap=wrap)
    client = t.client('--explicit-exit-notify', '1', *words, wrap=wrap, family=family)
    client.ping(100, 3)
    server.wait_log('SENT CONTROL', 5)
    wait_until(lambda: ('client1' in server.status()), 10, 'the status file does not name the client')
    push = client.push_reply()
    addresses = client.ns.ip('-br addr show dev tun0').split()[2:]
    routes = sorted(x.strip() for x in client.ns.ip('route').splitlines())
    status = mask_status(server.status(), version)
    mark = server.mark()
    client.process.signal(signal.SIGTERM)
    server.wait_log('client-instance exiting', 12, mark)
    client.process.wait_exit(10)
    return {
        'PUSH_REPLY': [mask(x) for x in push],
        'addresses': [x for x in addresses if not x.startswith('fe80')],
        'routes': routes,
        'status file': status,
        'server log': lines_of(server.text(), SERVER_LINES),
        'client log': lines_of(client.process.text(), CLIENT_LINES),
    }


@case(ours=True, name='stock_subnet', engine=False, seconds=60)
def subnet(t):
    """topology subnet, IPv4 and IPv6, status version 2"""
    on_both(t, lambda x: connected(x, []))


@case(ours=True, name='stock_net30', engine=False)
def net30(t):
    """topology net30 (the default), pushed options, tls-auth, status version 1"""
    push = ['push "route 10.90.0.0 255.255.0.0"', 'push "dhcp-option DNS 10.80.0.1"', 'keepalive 10 60',
            'push "route 10.91.0.0 255.255.255.0 vpn_gateway 7"']
    on_both(t, lambda x: connected(x, push, drop=['topology', 'keepalive', 'server-ipv6'], wrap='auth', version=1))


@case(ours=True, name='stock_crypt_ipv6', engine=False)
def crypt_ipv6(t):
    """tls-crypt, IPv6 outside, explicit-exit-notify, status version 3"""
    on_both(t, lambda x: connected(x, ['proto udp6', 'explicit-exit-notify 1', 'push "route-ipv6 fd90::/64"'],
                                   drop=['proto'], wrap='crypt', family=6, version=3))


@case(ours=True, name='stock_long_push', quick=False, engine=False)
def long_push(t):
    """more options than one PUSH_REPLY holds: continuation"""
    push = [f'push "route 10.{100 + n // 250}.{n % 250}.0 255.255.255.0"' for n in range(60)]
    on_both(t, lambda x: connected(x, push))


@case(ours=True, name='stock_p2p_topology', quick=False, engine=False)
def p2p_topology(t):
    """topology p2p"""
    on_both(t, lambda x: connected(x, ['topology p2p'], drop=['topology', 'server-ipv6']))


def refused(t, cert, lines, ca='ca.crt', wait=r'TLS Error: TLS handshake failed'):
    server = t.server(*lines)
    client = t.client('--hand-window', '6', '--connect-retry-max', '1', cert=cert, ca=ca, wait=False)
    server.wait_log(wait, 12)
    server.wait_log(r'SIGUSR1\[soft,tls-error\] received, client-instance restarting', 12)
    client.process.wait_log(r'SIGUSR1\[|SIGTERM\[|Exiting', 20, ends_ok=True)
    client.stop()
    client_lines = lines_of(client.process.text(), CLIENT_LINES)
    first_try = next((n for n, x in enumerate(client_lines) if 'SIGUSR1' in x), len(client_lines))
    server_lines = lines_of(server.text(), SERVER_LINES)
    end = next((n for n, x in enumerate(server_lines) if 'SIGUSR1[' in x), len(server_lines))
    return {'server log': server_lines[:end + 1], 'client log': client_lines[:first_try + 1]}


def register_refusals():
    for cert, quick in (('expired', True), ('revoked', True), ('stranger', False), ('wrongusage', False)):
        def run(t, cert=cert):
            lines = ['remote-cert-tls client', f'crl-verify {t.pki.path("crl.pem")}']
            on_both(t, lambda x: refused(x, cert, lines))
        run.__doc__ = f'what server log and client show of a certificate: {cert}'
        case(ours=True, quick=quick, engine=False, name=f'stock_refused_{cert}')(run)


register_refusals()


def stopped(t):
    """What a client is told by a server that stops."""
    server = t.server('explicit-exit-notify 1')
    client = t.client('--connect-retry-max', '1')
    mark = client.process.mark()
    server.process.signal(signal.SIGTERM)
    expect(server.process.wait_exit(10) == 0, 'exit code of the server')
    client.process.wait_log(r'SIGUSR1\[', 10, mark)
    return {'client log': lines_of(client.process.text(mark), CLIENT_LINES)[:3]}


@case(ours=True, name='stock_server_stops', quick=False, engine=False)
def server_stops(t):
    """RESTART on SIGTERM as the client sees it"""
    on_both(t, stopped)


def version_line(binary):
    return os.popen(f'{binary} --version').readline()


@case(ours=True, name='stock_version', engine=False)
def version(t):
    """--version: words 1 to 3 as stock's, ours in brackets, exit code 0"""
    stock, ours = version_line(t.setup.stock), version_line(t.setup.binary)
    expect(ours.split()[:3] == stock.split()[:3], f'{ours!r}, stock says {stock!r}')
    expect(re.search(r'\[shardvpn \d+\.\d+\.\d+\]', ours) and not re.search('[,\t]', ours), ours)
