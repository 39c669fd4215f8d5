# SPDX-License-Identifier: Apache-2.0
"""A server and stock clients, each in a namespace of its own.

    srv  10.71.N.1, fd71:N::1  ---- veth ----  10.71.N.2, fd71:N::2  client N      (outside)
    srv  10.80.0.1, fd80::1    ==== tunnel ===  10.80.0.x, fd80::x    client N      (inside)
"""
import re
import socket
import subprocess

from lab import Failure, Skip, expect, wait_until

INSIDE4 = '10.80.0.1'
INSIDE6 = 'fd80::1'
READY = r'Initialization Sequence Completed'
PORT = 1194
METRICS_PORT = 9176

# Our own directives; the stock daemon leaves them out.
OWN = ('workers worker-cpus handshake-threads io-engine aead-engine metrics worker-memory disable-feature '
       'offload busy-poll client-rate')

SERVER = f'''ignore-unknown-option {OWN}
dev tun
proto udp
port {PORT}
topology subnet
server 10.80.0.0 255.255.255.0
server-ipv6 fd80::/64
keepalive 5 30
dh none
verb 4
tmp-dir /tmp
'''


def wrap_lines(pki, wrap, is_server):
    """Directives of the control channel's wrapping: plain, auth, auth256 (SHA256), crypt."""
    if wrap == 'plain':
        return []
    if wrap == 'crypt':
        return [f'tls-crypt {pki.path("ta.key")}']
    lines = [f'tls-auth {pki.path("ta.key")} {0 if is_server else 1}']
    return lines + (['auth SHA256'] if wrap == 'auth256' else [])


class Setup:
    """What is tested and how: the server's binary, its I/O engine, the size of the run."""

    def __init__(self, binary, engine='auto', aead='auto', workers=2, is_quick=True, prefix=(), stock='/usr/sbin/openvpn'):
        self.binary, self.engine, self.aead, self.workers = binary, engine, aead, workers
        self.is_quick, self.prefix, self.stock = is_quick, list(prefix), stock
        first = subprocess.run([binary, '--version'], capture_output=True, text=True, check=False).stdout
        self.version = first.splitlines()[0] if first else ''
        self.is_ours = 'shardvpn' in self.version

    def need_ours(self):
        if not self.is_ours:
            raise Skip('only for our own server')


class Net:
    """The server's namespace and its clients'."""

    def __init__(self, lab):
        self.lab = lab
        self.srv = lab.namespace('srv')
        self.count = 0

    def client(self, mtu=1500):
        """A namespace with a link of its own to the server; .n tells the addresses."""
        n = self.count
        self.count += 1
        ns = self.lab.namespace(f'c{n}')
        ns.n = n
        self.lab.link(self.srv, ns, f'to{n}', 'out', mtu)
        self.srv.ip(f'addr add 10.71.{n}.1/24 dev to{n}')
        self.srv.ip(f'addr add fd71:{n}::1/64 dev to{n} nodad')
        ns.ip(f'addr add 10.71.{n}.2/24 dev out')
        ns.ip(f'addr add fd71:{n}::2/64 dev out nodad')
        return ns


class Server:
    """The daemon under test. `lines` are added to the configuration, `drop` directives left out.
    It is started with start() and wait_ready()."""

    def __init__(self, lab, pki, setup, ns, lines=(), drop=(), cert='server', wrap='plain', argv_prefix=(),
                 engine=None, name='server'):
        self.lab, self.setup, self.ns = lab, setup, ns
        self.status_path = lab.path(f'{name}.status')
        text = self._config(pki, setup, list(lines), drop, cert, wrap, engine or setup.engine)
        self.config = lab.write(f'{name}.conf', text)
        self.argv = [*setup.prefix, *argv_prefix, setup.binary, '--config', self.config]
        self.name, self.process = name, None

    def _config(self, pki, setup, lines, drop, cert, wrap, engine):
        text = SERVER
        text += f'ca {pki.path("ca.crt")}\ncert {pki.path(cert + ".crt")}\nkey {pki.path(cert + ".key")}\n'
        text += f'status {self.status_path} 1\nstatus-version 2\n'
        text += f'workers {setup.workers}\nio-engine {engine}\naead-engine {setup.aead}\nmetrics 127.0.0.1 {METRICS_PORT}\n'
        text = '\n'.join(x for x in text.splitlines() if x.split()[0] not in drop)
        if not self.setup.is_ours:
            lines = lines + ['disable-dco']
        text = text.replace('tmp-dir /tmp\n', '')
        return '\n'.join([text, *wrap_lines(pki, wrap, True), *lines]) + '\n'

    def start(self):
        self.process = self.lab.start(self.ns, self.name, self.argv)
        self.pid = self.process.pid

    def wait_ready(self, seconds=15):
        if self.setup.prefix:
            seconds *= 8
        self.process.wait_log(READY, seconds)

    def text(self, since=0):
        return self.process.text(since)

    def mark(self):
        return self.process.mark()

    def wait_log(self, pattern, seconds=10, since=0):
        return self.process.wait_log(pattern, seconds, since)

    def has_metrics(self):
        """Does it run, and was it told to tell its counts?"""
        with open(self.config, encoding='utf-8') as f:
            told = re.search(rf'^metrics 127.0.0.1 {METRICS_PORT}$', f.read(), re.M)
        return bool(told and self.process and self.process.is_running() and self.process.find(READY))

    def metrics(self, path='/metrics'):
        return Metrics(http_get(self.ns, path))

    def status(self):
        with open(self.status_path, encoding='utf-8', errors='replace') as f:
            return f.read()

    def expect_alive(self):
        expect(self.process.is_running(), f'the server ended with {self.process.popen.returncode}')


class Metrics:
    """Samples of one scrape."""

    def __init__(self, text):
        self.text = text
        self.samples = []
        for line in text.splitlines():
            m = re.match(r'(\w+)(?:\{(.*)\})?\s+(\S+)', line)
            if m and not line.startswith('#'):
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m.group(2) or ''))
                self.samples.append((m.group(1), labels, float(m.group(3))))

    def all(self, name, **labels):
        return [(have, v) for n, have, v in self.samples
                if n == name and all(have.get(k) == x for k, x in labels.items())]

    def sum(self, name, **labels):
        return sum(v for _, v in self.all(name, **labels))

    def has(self, name):
        return any(n == name for n, _, _ in self.samples)


def http_get(ns, path, port=METRICS_PORT, host='127.0.0.1', headers=''):
    """The body of a GET inside `ns`; Failure if the status is not 200."""
    with ns.socket() as s:
        s.settimeout(5)
        try:
            s.connect((host, port))
            s.sendall(f'GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n'.encode())
            data = b''
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                data += piece
        except OSError as e:
            raise Failure(f'GET {path}: {e}') from None
    head, _, body = data.partition(b'\r\n\r\n')
    expect(b' 200 ' in head.split(b'\r\n')[0], f'GET {path}: {head[:100]!r}')
    if b'chunked' in head.lower():
        body = unchunk(body)
    return body.decode('utf-8', 'replace')


def unchunk(body):
    out = b''
    while body:
        size, _, rest = body.partition(b'\r\n')
        n = int(size.split(b';')[0] or b'0', 16)
        if n == 0:
            break
        out, body = out + rest[:n], rest[n + 2:]
    return out


class Client:
    """A stock client. `words` are added to its command line (lists of words or strings)."""

    def __init__(self, lab, pki, setup, ns, words=(), cert='client1', wrap='plain', family=4, data='v2', remote=None,
                 dev='tun0', name=None, env=None, ca='ca.crt', wait=True, binary=None):
        self.ns, self.setup, self.lab, self.dev = ns, setup, lab, dev
        host, port = remote or ((f'10.71.{ns.n}.1' if family == 4 else f'fd71:{ns.n}::1'), PORT)
        argv = [binary or setup.stock, '--client', '--dev', dev, '--dev-type', 'tun', '--nobind', '--disable-dco',
                '--remote', host, str(port), f'udp{family}', '--remote-cert-tls', 'server', '--verb', '4',
                '--ca', pki.path(ca), '--cert', pki.path(cert + '.crt'), '--key', pki.path(cert + '.key'),
                '--connect-retry', '1', '3', '--auth-nocache']
        for line in wrap_lines(pki, wrap, False):
            argv += ('--' + line).split()
        if data == 'v1':
            argv += ['--pull-filter', 'ignore', 'peer-id']
        for w in words:
            argv += w.split() if isinstance(w, str) else list(w)
        self.argv, self.env, self.name = argv, env, name or ns.name
        self.process = None
        self.start()
        if wait:
            self.wait_connected()

    def start(self):
        self.process = self.lab.start(self.ns, self.name, self.argv, self.env)

    def wait_connected(self, seconds=20, since=0):
        if self.setup.prefix:
            seconds *= 4
        return self.process.wait_log(READY, seconds, since)

    def push_reply(self):
        """The options of the last PUSH_REPLY."""
        found = re.findall(r"PUSH: Received control message: '(PUSH_REPLY.*?)'", self.process.text())
        expect(found, f'{self.name} got no PUSH_REPLY')
        return found[-1].split(',')

    def address(self, family=4):
        """Its address inside the tunnel."""
        out = self.ns.ip(f'-br -{family} addr show dev {self.dev} scope global')
        m = re.search(r'([0-9a-f.:]+)/\d+', out.split(None, 2)[-1])
        expect(m, f'{self.name} has no IPv{family} address: {out}')
        return m.group(1)

    def ping(self, size=56, count=1, to=INSIDE4, seconds=5, source=None):
        """Pings that must all be answered."""
        family = ['-6'] if ':' in to else []
        out = self.ns.run(['ping', *family, '-n', '-q', '-i', '0.05', '-c', str(count), '-W', '2', '-s', str(size),
                           '-w', str(seconds), '-I', source or self.dev, to], check=False, seconds=seconds + 10)
        got = re.search(r' (\d+) received', out)
        expect(got and int(got.group(1)) >= count, f'{self.name}: ping -s {size} {to}: {out.strip()[-200:]}')

    def wait_ping(self, to=INSIDE4, seconds=20):
        """Until a ping gets through."""
        def attempt():
            return ' 0 received' not in self.ns.run(['ping', '-n', '-q', '-c', '1', '-W', '1', '-I', self.dev, to],
                                                    check=False)
        wait_until(attempt, seconds, f'{self.name}: no ping to {to} got through', every=0.1)

    def stop(self):
        return self.process.stop()
