# SPDX-License-Identifier: Apache-2.0
"""Starts that fail (one sentence that says what to do, exit code 1), and starts in poor surroundings.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24 ---  c0 (stock client)
"""
import os
import re
import signal
import socket
import sys

from case import case, expect, wait_until
from traffic import Transfer
from vpn import INSIDE4, METRICS_PORT, PORT

SUPPORT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'support')
NO_URING = [sys.executable, os.path.join(SUPPORT, 'deny_syscalls.py'), '425,426,427']
ONLY_NET_ADMIN = ['setpriv', '--bounding-set=-all,+net_admin', '--inh-caps=-all']
NO_CAPABILITIES = ['setpriv', '--bounding-set=-all', '--inh-caps=-all']
HIDE_TUN = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /dev/net && exec "$@"', 'sh']
OPEN_TUN = ['unshare', '-m', 'sh', '-c',
            'mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"', 'sh']
TIMESTAMP = r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (us=\d+ )?'


def fails(t, pattern, lines=(), lines_max=12, seconds=15, **options):
    """A start that ends with 1 and a line that matches `pattern`."""
    server = t.server(*lines, start=False, **options)
    server.start()
    code = server.process.wait_exit(seconds)
    text = server.text()
    expect(code == 1, f'exit code {code}:\n{text[-1500:]}')
    expect(re.search(pattern, text, re.I | re.M), f'nothing says {pattern!r}:\n{text[-1500:]}')
    expect('Initialization Sequence Completed' not in text, 'it said that it was ready')
    said = [x for x in text.splitlines() if x.strip()]
    expect(len(said) <= lines_max, f'{len(said)} lines for one fault:\n{text[-1500:]}')
    expect(not re.search(r'Sanitizer|assert', text, re.I), text[-1500:])
    expect('tun0' not in t.net.srv.ip('-br link'), 'it left its device behind')
    return text


@case(ours=True, engine=False)
def port_taken(t):
    """the UDP port is in use, perhaps by a server that runs already: its device and routes are left alone"""
    with t.net.srv.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(('0.0.0.0', PORT))
        text = fails(t, rf'{PORT}.*in use|in use.*{PORT}')
    expect('TUN/TAP device' not in text, f'it made a device first:\n{text}')


@case(ours=True, quick=False, engine=False)
def metrics_port_taken(t):
    """the port of the metrics is in use"""
    with t.net.srv.socket() as s:
        s.bind(('127.0.0.1', METRICS_PORT))
        s.listen(1)
        fails(t, rf'metrics.*{METRICS_PORT}')


@case(ours=True, engine=False)
def tun_missing(t):
    """/dev/net/tun does not exist"""
    fails(t, r'/dev/net/tun', argv_prefix=HIDE_TUN)


@case(ours=True, engine=False)
def permission_missing(t):
    """without CAP_NET_ADMIN"""
    fails(t, r'CAP_NET_ADMIN|root', argv_prefix=NO_CAPABILITIES)


@case(ours=True, engine=False)
def key_files(t):
    """a key that is missing, is no key, or belongs to another certificate: file and line, or the file's name;
    --test-config finds it too"""
    garbage = t.lab.write('garbage.key', 'no key at all\n')
    for key, pattern in ((t.lab.path('absent.key'), r'absent\.key'), (garbage, r'garbage\.key|private key|key'),
                         (t.pki.path('client.key'), r'match|mismatch|does not belong')):
        fails(t, pattern, [f'key {key}'], drop=['key'])
    server = t.server(f'key {garbage}', start=False, drop=['key'])
    server.argv.append('--test-config')
    server.start()
    code = server.process.wait_exit(15)
    expect(code == 1 and re.search(r'garbage\.key', server.text()), f'--test-config: exit code {code}: {server.text()}')


@case(ours=True, engine=False)
def faults_are_reported_together(t):
    """every fault of a file in one run, with file and line, and nothing was started"""
    text = fails(t, r'server\.conf:\d+: ', ['prot udp', 'management 127.0.0.1 7505', 'keepalive ten 60', 'dev tap'],
                 lines_max=20)
    faults = [x for x in text.splitlines() if re.search(r'server\.conf:\d+: ', x)]
    expect(len(faults) >= 4, f'{len(faults)} of 4 faults:\n{text}')
    expect(re.search(r':\d+: prot: .*\bproto\b', text), f'the nearest name is missing:\n{text}')
    expect(re.search(r':\d+: management: not supported yet', text), text)


@case(ours=True, engine=False)
def task_limit_too_low(t):
    """a limit of processes that cannot hold the threads: one sentence that names it"""
    os.chmod(t.lab.dir, 0o755)
    os.chmod(os.path.dirname(t.lab.dir), 0o711)
    lines = [f'{d} {t.lab.write(n, t.pki.read(n), 0o644)}'
             for d, n in (('ca', 'ca.crt'), ('cert', 'server.crt'), ('key', 'server.key'))]
    server = t.server(*lines, start=False, drop=['ca', 'cert', 'key', 'status'])
    os.chmod(server.config, 0o644)
    prefix = OPEN_TUN + ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all,+net_admin',
                         '--ambient-caps=-all,+net_admin', '--bounding-set=-all,+net_admin', 'prlimit', '--nproc=3']
    server.argv = prefix + server.argv
    server.start()
    code = server.process.wait_exit(15)
    expect(code == 1, f'exit code {code}: {server.text()[-800:]}')
    expect(re.search(r'RLIMIT_NPROC|LimitNPROC|TasksMax', server.text()), server.text()[-800:])


def check_runs_on_epoll(t, lines=(), argv_prefix=(), says=r'(?i)epoll'):
    server = t.server(*lines, engine='auto', argv_prefix=argv_prefix)
    expect(server.process.find(says), f'nothing says that the engine is epoll:\n{server.text()[-1500:]}')
    engines = {labels.get('io_engine') for labels, _ in server.metrics().all('shardvpn_worker_info')}
    expect(engines == {'epoll'}, f'io_engine in the metrics: {engines}')
    client = t.client()
    client.ping(1472, 3)
    Transfer(client.ns, t.net.srv, INSIDE4, t.bytes(5, 50)).wait(60)
    Transfer(t.net.srv, client.ns, client.address(), t.bytes(5, 50)).wait(60)
    return server


@case(ours=True, engine=False)
def uring_forbidden(t):
    """a seccomp filter that denies io_uring: it runs on epoll and says so; demanded, it does not start"""
    check_runs_on_epoll(t, argv_prefix=NO_URING)
    for p in t.lab.processes:
        p.stop()
    fails(t, r'io_uring|io-engine (auto|epoll)', engine='uring', argv_prefix=NO_URING, name='second')


@case(ours=True, engine=False)
def signals_at_start(t):
    """SIGHUP, SIGUSR1 and SIGUSR2 while it starts do not end it"""
    server = t.server(start=False)
    server.start()
    server.wait_log('library versions', 15)

    def is_ready():
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            server.process.signal(number)
        server.expect_alive()
        return 'Initialization Sequence Completed' in server.text()
    wait_until(is_ready, 60 if t.setup.prefix else 15, 'it did not become ready', every=0.001)
    t.client().ping(100, 3)


@case(ours=True, engine=False, quick=False)
def uring_masked(t):
    """disable-feature uring: it runs on epoll and says so"""
    check_runs_on_epoll(t, ['disable-feature uring'])


@case(ours=True, engine=False)
def container_like(t):
    """no io_uring, no capability but CAP_NET_ADMIN: it runs on epoll, serves clients, stops cleanly"""
    server = check_runs_on_epoll(t, argv_prefix=ONLY_NET_ADMIN + NO_URING)
    server.process.signal(signal.SIGTERM)
    expect(server.process.wait_exit(10) == 0, 'exit code after SIGTERM')
    expect('tun0' not in t.net.srv.ip('-br link'), 'the device is still there')


@case(ours=True, quick=False)
def old_kernel(t):
    """with every probed kernel feature masked in turn the tunnel works"""
    for n, feature in enumerate(('uring-recv-multishot', 'uring-read-multishot', 'recvmmsg', 'steering-cbpf', 'huge-pages')):
        server = t.server(f'disable-feature {feature}', name=f'server{n}')
        client = t.client(name=f'client-{feature}')
        client.ping(1472, 3)
        Transfer(client.ns, t.net.srv, INSIDE4, 8 << 20).wait(60)
        Transfer(t.net.srv, client.ns, client.address(), 8 << 20).wait(60)
        client.stop()
        expect(server.process.stop() == 0, 'exit code after SIGTERM')


@case()
def drops_privileges(t):
    """user nobody, group nogroup: it serves clients as nobody, and still removes its routes at the end"""
    server = t.server('user nobody', 'group nogroup', 'persist-key', 'persist-tun', 'route 10.99.0.0 255.255.0.0')
    client = t.client()
    with open(f'/proc/{server.pid}/status', encoding='ascii') as f:
        uids = re.search(r'^Uid:\s+(\d+)\s+(\d+)', f.read(), re.M).groups()
    expect(uids == ('65534', '65534'), f'it runs as uid {uids}')
    client.ping(300, 3)
    Transfer(client.ns, t.net.srv, INSIDE4, 5 << 20).wait(30)
    expect(server.process.stop() == 0, 'exit code after SIGTERM')
    if t.setup.is_ours:
        expect('10.99.0.0' not in t.net.srv.ip('route'), 'the route is still there')


@case(quick=False)
def background(t):
    """daemon, log, writepid: the first process returns 0 when the server is ready"""
    pid_file, log = t.lab.path('pid'), t.lab.path('daemon.log')
    server = t.server('daemon', f'log {log}', f'writepid {pid_file}', start=False)
    server.start()
    expect(server.process.wait_exit(15) == 0, server.text())

    def text():
        return open(log, encoding='utf-8').read() if os.path.exists(log) else ''
    wait_until(lambda: 'Initialization Sequence Completed' in text(), 10, lambda: f'not ready: {text()[-500:]}')
    pid = int(open(pid_file, encoding='ascii').read())
    t.lab.cleanups.append(lambda: end(pid))
    t.client().ping(100, 3)
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not os.path.exists(f'/proc/{pid}'), 10, 'the daemon did not end')


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@case(ours=True, quick=False)
def device_made_before(t):
    """a multi-queue device made before is taken; one with a single queue is explained"""
    t.net.srv.ip('tuntap add dev tun0 mode tun multi_queue')
    server = t.server('dev tun0', drop=['dev'])
    expect('tun1' not in t.net.srv.ip('-br link'), 'it made a device of its own')
    t.client().ping(100, 3)
    expect(server.process.stop() == 0, 'exit code after SIGTERM')
    expect('tun0' in t.net.srv.ip('-br link'), 'it removed a device that it had not made')
    t.net.srv.ip('link del tun0')
    t.net.srv.ip('tuntap add dev tun0 mode tun')
    server = t.server('dev tun0', drop=['dev'], start=False, name='second')
    server.start()
    code = server.process.wait_exit(15)
    expect(code == 1 and re.search(r'multi.?queue', server.text(), re.I), f'exit code {code}: {server.text()[-800:]}')


@case(ours=True, quick=False, engine=False)
def ipv6_only_listen(t):
    """proto udp6 with bind ipv6only serves IPv6 and not IPv4"""
    t.server('proto udp6', 'bind ipv6only', drop=['proto'])
    t.client(family=6).ping(100, 3)
    client = t.client('--hand-window', '4', wait=False)
    client.process.wait_log('TLS key negotiation failed|Connection refused', 12)
