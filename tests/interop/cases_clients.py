# SPDX-License-Identifier: Apache-2.0
"""Clients that move, die, come back, come in crowds, and leave.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24 ---  c0 (stock client, 10.80.0.2)
                             --- veth 10.71.1.0/24 ---  c1 ...
    with a relay:  c0: client -> 127.0.0.1:relay, relay's outside port -> srv
"""
import signal

from case import case, expect, wait_until
from cases_keys import CC_EXIT, shim_env
from traffic import Relay, Transfer
from vpn import INSIDE4, PORT


@case(both=True)
def float_address(t):
    """the client's address outside changes in mid-transfer: the tunnel and its connections go on"""
    server = t.server()
    client = t.client()
    moves = [Transfer(client.ns, t.net.srv, INSIDE4, 6 << 20, seconds=6),
             Transfer(t.net.srv, client.ns, client.address(), 6 << 20, seconds=6)]
    wait_until(lambda: moves[0].got > 1 << 20 and moves[1].got > 1 << 20, 20, 'the transfers did not start')
    client.ns.ip('addr add 10.71.0.9/24 dev out')
    client.ns.ip('addr del 10.71.0.2/24 dev out')
    client.ns.ip('addr replace 10.71.0.9/24 dev out')
    for m in moves:
        m.wait(60)
    client.ping(100, 3)
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    server.wait_log(r'10\.71\.0\.9', 10)


@case()
def float_port(t):
    """a NAT gives the client a new port in mid-transfer, twice"""
    server = t.server()
    ns = t.net.client()
    relay = Relay(ns, (f'10.71.{ns.n}.1', PORT))
    client = t.client(ns=ns, remote=('127.0.0.1', relay.port))
    move = Transfer(client.ns, t.net.srv, INSIDE4, 4 << 20, seconds=5)
    for part in (1, 2):
        wait_until(lambda part=part: move.got > part << 20, 20, 'the transfer did not go on')
        relay.rebind()
    move.wait(60)
    client.ping(100, 3)
    client.ping(100, 3)
    relay.stop()
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    if t.setup.is_ours:
        wait_until(lambda: server.metrics().sum('shardvpn_peer_floats_total', result='accepted') >= 2, 4,
                   'two floats were not counted')


@case(quick=False)
def float_without_peer_id_is_refused(t):
    """a P_DATA_V1 client whose port changed is not found again: its packets are dropped, no harm done"""
    server = t.server()
    ns = t.net.client()
    relay = Relay(ns, (f'10.71.{ns.n}.1', PORT))
    client = t.client(ns=ns, remote=('127.0.0.1', relay.port), data='v1')
    client.ping(100)
    relay.rebind()
    out = ns.run(f'ping -c 2 -W 1 -I tun0 {INSIDE4}', check=False)
    expect(' 0 received' in out, f'a stranger\'s packets were taken: {out}')
    server.expect_alive()
    relay.stop()


@case()
def killed_and_restarted(t):
    """a client that was killed gets its address again, and its old session goes"""
    server = t.server()
    client = t.client(cert='client3')
    t.client(cert='client4')
    before = client.address(), client.address(6)
    client.process.kill()
    mark = server.mark()
    client.start()
    client.wait_connected()
    expect((client.address(), client.address(6)) == before, f'it was {before}, now {client.address()}')
    server.wait_log(r"MULTI: new connection by client 'client3' will cause previous active sessions", 5, mark)
    client.ping(100, 3)


@case(both=True, seconds=90)
def twenty_clients(t):
    """20 clients at once, spread over the workers; all of them reach the server"""
    server = t.server()
    clients = [t.client(cert=f'client{n + 1}', wait=False) for n in range(20)]
    for c in clients:
        c.wait_connected(40)
    expect(len({c.address() for c in clients}) == 20, 'two clients share an address')
    for c in clients:
        c.ping(200, 2)
    if not t.setup.is_ours:
        return
    spread = [v for _, v in wait_until(lambda: server.metrics().all('shardvpn_worker_peers'), 5, 'no worker_peers')]
    wait_until(lambda: server.metrics().sum('shardvpn_worker_peers') == 20, 5, lambda: f'worker_peers: {spread}')
    spread = [v for _, v in server.metrics().all('shardvpn_worker_peers')]
    expect(len(spread) == t.setup.workers, f'worker_peers for {len(spread)} workers')
    expect(max(spread) - min(spread) <= 2, f'clients a worker: {spread}')


@case()
def client_to_client(t):
    """with client-to-client two clients reach each other, without the kernel"""
    t.server('client-to-client')
    a, b = t.client(cert='client1'), t.client(cert='client2')
    a.ping(500, 3, to=b.address())
    b.ping(500, 3, to=a.address())
    Transfer(a.ns, b.ns, b.address(), t.bytes(5, 50)).wait(60)
    Transfer(b.ns, a.ns, a.address(6), t.bytes(5, 50)).wait(60)


@case(quick=False)
def clients_are_separate(t):
    """without client-to-client nothing goes from client to client past the kernel"""
    t.server()
    a, b = t.client(cert='client1'), t.client(cert='client2')
    out = a.ns.run(['ping', '-c', '2', '-W', '1', '-I', 'tun0', b.address()], check=False)
    expect(' 0 received' in out, f'a client reached another: {out}')
    t.net.srv.run('sysctl -qw net.ipv4.ip_forward=1')
    a.ping(100, 2, to=b.address())


@case(quick=False)
def spoofed_source(t):
    """a packet with another client's source address is dropped and counted"""
    server = t.server('client-to-client')
    a, b = t.client(cert='client1'), t.client(cert='client2')
    a.ns.ip(f'addr add {b.address()}/32 dev lo')
    out = a.ns.run(['ping', '-c', '2', '-W', '1', '-I', b.address(), INSIDE4], check=False)
    expect(' 0 received' in out, f'a spoofed packet was answered: {out}')
    b.ping(100)
    if t.setup.is_ours:
        wait_until(lambda: server.metrics().sum('shardvpn_dropped_packets_total', reason='source_spoofed') >= 2, 5,
                   'source_spoofed was not counted')


def check_exit(t, env=None):
    server = t.server()
    client = t.client('--explicit-exit-notify', '1', env=env)
    address = client.address()
    mark = server.mark()
    client.process.signal(signal.SIGTERM)
    server.wait_log(r'SIG(TERM|USR1)\[soft,(remote-exit|delayed-exit)\] received, client-instance', 12, mark)
    client.process.wait_exit(10)
    again = t.client('--explicit-exit-notify', '1', ns=client.ns, name='again')
    expect(again.address() == address, 'the address was not free at once')


@case()
def exit_by_control_message(t):
    """explicit-exit-notify of a current client (control message): the server lets it go at once"""
    check_exit(t)


@case(quick=False)
def exit_by_occ_message(t):
    """explicit-exit-notify of an older client (OCC message on the data channel)"""
    check_exit(t, shim_env(t, CC_EXIT))


@case()
def ping_restart(t):
    """a client that falls silent is dropped after ping-restart; one that talks is not"""
    server = t.server('keepalive 1 3', drop=['keepalive'])
    silent, lively = t.client(cert='client1'), t.client(cert='client2')
    mark = server.mark()
    silent.process.signal(signal.SIGSTOP)
    server.wait_log(r'client1/\S+ .*Inactivity timeout \(--ping-restart\), restarting', 12, mark)
    expect(not server.process.find(r'client2/\S+ .*Inactivity timeout', mark), 'a lively client was dropped')
    lively.ping(100, 3)
    silent.process.signal(signal.SIGCONT)
    silent.process.wait_log(r'Inactivity timeout|Restart|RESTART|process restarting', 15)


@case(quick=False)
def server_falls_silent(t):
    """a client whose server is gone restarts and comes back when it is there again"""
    server = t.server('keepalive 1 3', drop=['keepalive'])
    client = t.client()
    server.process.kill()
    client.process.wait_log('Inactivity timeout', 15)
    mark = client.process.mark()
    server.start()
    server.wait_ready()
    client.wait_connected(30, mark)
    client.ping(100, 3)


@case(quick=False)
def duplicate_cn(t):
    """with duplicate-cn one certificate serves two clients at once"""
    t.server('duplicate-cn')
    a, b = t.client(cert='client1'), t.client(cert='client1')
    expect(a.address() != b.address(), 'two clients share an address')
    a.ping(100, 3)
    b.ping(100, 3)
    a.ping(100, 3)


@case()
def server_stops(t):
    """SIGTERM: clients are told RESTART, the server exits 0, its device and routes are gone"""
    server = t.server('explicit-exit-notify 1', 'route 10.99.0.0 255.255.0.0', wrap='crypt')
    client = t.client(wrap='crypt')
    expect('10.99.0.0/16' in t.net.srv.ip('route'), 'the route of the server is missing')
    client_mark = client.process.mark()
    server.process.signal(signal.SIGTERM)
    code = server.process.wait_exit(10)
    expect(code == 0, f'exit code {code}')
    client.process.wait_log(r"Connection reset command was pushed by server|server_pushed-connection-reset|RESTART", 5,
                            client_mark)
    expect('tun0' not in t.net.srv.ip('-br link'), 'the device is still there')
    expect('10.99.0.0' not in t.net.srv.ip('route'), 'the route is still there')
    mark = client.process.mark()
    server.start()
    server.wait_ready()
    client.wait_connected(30, mark)
    client.ping(100, 3)


@case(quick=False, both=True)
def server_is_killed(t):
    """after SIGKILL the server starts again at once, although a dead ring holds its descriptors"""
    server = t.server('keepalive 1 4', drop=['keepalive'])
    client = t.client()
    for _ in range(3):
        server.process.kill()
        server.start()
        server.wait_ready()
    mark = client.process.mark()
    client.wait_connected(40, mark)
    client.ping(100, 3)


@case(quick=False)
def address_pool_file(t):
    """ifconfig-pool-persist: after a restart of the server clients get their addresses again"""
    pool = t.lab.path('ipp.txt')
    server = t.server(f'ifconfig-pool-persist {pool} 1')
    a, b = t.client(cert='client7'), t.client(cert='client8')
    had = a.address(), b.address()
    wait_until(lambda: all(x in open(pool, encoding='ascii').read() for x in ('client7,10.80.0.', 'client8,10.80.0.')),
               8, 'the file was not written')
    a.stop(), b.stop(), server.process.stop()
    server.start()
    server.wait_ready()
    b = t.client(ns=b.ns, cert='client8', name='b2')
    a = t.client(ns=a.ns, cert='client7', name='a2')
    expect((a.address(), b.address()) == had, f'they had {had}, now {a.address()}, {b.address()}')
