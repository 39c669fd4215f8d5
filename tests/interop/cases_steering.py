# SPDX-License-Identifier: Apache-2.0
"""Who reads a packet from the tun device: its client's worker by the eBPF program, or any, and then it is handed over.

    srv (server with 4 workers, 10.80.0.1, fd80::1)  --- veth 10.71.N.0/24 ---  c0 .. c5 (stock clients)
"""
import os
import signal
import socket
import sys

from case import case, expect, wait_until
from cases_start import ONLY_NET_ADMIN, SUPPORT
from traffic import Transfer
from vpn import INSIDE4

WORKERS = 4
CLIENTS = 6
FLOWS = 32  # from so many ports; the kernel's own steering starts each on a hashed queue
ROUNDS = 5
PORT = 7000
SLOTS = 256  # of peer-ids, in runs, one a worker
OWN_PACKETS = 24  # multicasts of the device's kernel side, which go to all workers
SYS_BPF = {'aarch64': '280'}.get(os.uname().machine, '321')
NO_BPF = [sys.executable, os.path.join(SUPPORT, 'deny_syscalls.py'), SYS_BPF]
STEERED = r'packets from the tun device are steered to their client.s worker by eBPF'
AUTOMATIC = r'NOTE: packets from the tun device are not steered .*\(%s\): the kernel.s automatic steering serves'


def start(t, *lines, **options):
    drop = ['workers'] + (['io-engine'] if 'engine' in options else [])
    return t.server(f'workers {WORKERS}', *lines, drop=drop, **options)


def connect(t, order, namespaces=None):
    """Clients, one by one in this order: their workers come from it."""
    clients = []
    for n in order:
        ns = namespaces[n] if namespaces else t.net.client()
        clients.append(t.client('--explicit-exit-notify 1', ns=ns, cert=f'client{n + 1}'))
    return clients


def expect_mode(server, mode, says):
    expect(server.process.find(says), f'nothing says {says!r}:\n{server.text()[-1500:]}')
    found = [labels['mode'] for labels, _ in server.metrics().all('shardvpn_tun_steering_info')]
    expect(found == [mode], f'mode in the metrics: {found}')


def handed_over(server):
    return server.metrics().sum('shardvpn_handoff_packets_total', direction='out')


def receiver(ns, address):
    s = ns.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    s.bind((address, PORT))
    s.setblocking(False)
    return s


def drain(s, got):
    while True:
        try:
            got.add((s.recvfrom(100)[1][1], len(got)))
        except BlockingIOError:
            return len(got)


def flows_down(t, clients, family):
    """ROUNDS datagrams of each of FLOWS flows to every client, none of which answers. All arrive."""
    kind = socket.AF_INET6 if family == 6 else socket.AF_INET
    senders = [t.net.srv.socket(kind, socket.SOCK_DGRAM) for _ in range(FLOWS)]
    sinks = [(c, c.address(family)) for c in clients]
    sinks = [(c, a, receiver(c.ns, a), set()) for c, a in sinks]
    for turn in range(1, ROUNDS + 1):
        for c, address, s, got in sinks:
            for sender in senders:
                sender.sendto(b'x' * 64, (address, PORT))
            wait_until(lambda: drain(s, got) == turn * FLOWS, 10,
                       lambda: f'{c.name}: {len(got)} of {turn * FLOWS} datagrams over IPv{family}', every=0.005)
    for s in senders + [s for _, _, s, _ in sinks]:
        s.close()


def packets_down(t, server, clients):
    """How many packets of two rounds of flows were handed over."""
    before = handed_over(server)
    for family in (4, 6):
        flows_down(t, clients, family)
    wait_until(lambda: server.metrics().sum('shardvpn_tun_read_packets_total') >= 2 * FLOWS * ROUNDS * len(clients), 5,
               'the counters do not have what was read')
    return handed_over(server) - before


def expect_owners_read(t, server, clients):
    ids = [int(x.split()[1]) for c in clients for x in c.push_reply() if x.startswith('peer-id')]
    workers = {i % SLOTS * WORKERS // SLOTS for i in ids}
    expect(len(workers) == WORKERS, f'the clients are all on workers {workers}')
    count = packets_down(t, server, clients)
    expect(count <= OWN_PACKETS, f'{count} packets were handed over')
    errors = server.metrics().sum('shardvpn_tun_steering_errors_total')
    expect(errors == 0, f'{errors} changes of the maps were refused')


@case(ours=True, both=True)
def steering_ebpf(t):
    """as nobody, four workers, six clients: each packet is read by its client's worker, also after the clients came
    again in another order"""
    server = start(t, 'user nobody', 'group nogroup')
    expect_mode(server, 'ebpf', STEERED)
    clients = connect(t, range(CLIENTS))
    expect_owners_read(t, server, clients)
    ids = {c.name: c.push_reply() for c in clients}
    for c in clients:
        c.process.signal(signal.SIGTERM)
    for c in clients:
        c.process.wait_exit(10)
    wait_until(lambda: server.metrics().sum('shardvpn_peers') == 0, 40, 'the clients do not go')
    namespaces = [c.ns for c in clients]
    again = connect(t, reversed(range(CLIENTS)), namespaces)
    expect(any(c.push_reply() != ids[c.name] for c in again), 'all have the peer-ids and addresses that they had')
    expect_owners_read(t, server, again)


@case(ours=True, both=True)
def steering_automatic(t):
    """disable-feature steering-ebpf: packets come to any worker, are handed over, and all arrive"""
    server = start(t, 'disable-feature steering-ebpf')
    expect_mode(server, 'automatic', AUTOMATIC % 'disable-feature steering-ebpf')
    clients = connect(t, range(CLIENTS))
    count = packets_down(t, server, clients)
    expect(count > FLOWS * ROUNDS, f'only {count} packets were handed over')
    for c in clients[:3]:
        Transfer(t.net.srv, c.ns, c.address(), t.bytes(2, 20)).wait(30)


def check_not_permitted(t, prefix, name):
    server = start(t, argv_prefix=prefix, name=name, engine='auto')
    expect_mode(server, 'automatic', AUTOMATIC % 'it takes CAP_BPF at start')
    client = t.client(name=f'client-{name}')
    client.ping(1400, 3)
    Transfer(t.net.srv, client.ns, client.address(), 2 << 20).wait(30)
    client.stop()
    server.process.stop()


@case(ours=True, engine=False)
def steering_not_permitted(t):
    """without CAP_BPF, and under a filter that denies bpf(2): one line says so and the tunnel works"""
    check_not_permitted(t, ONLY_NET_ADMIN, 'capability')
    check_not_permitted(t, NO_BPF, 'filter')


@case(ours=True, engine=False)
def steering_of_one_worker(t):
    """one worker has nothing to steer: no line about it"""
    server = t.server('workers 1', drop=['workers'])
    expect(not server.process.find('packets from the tun device'), server.text()[-1500:])
    client = t.client()
    client.ping(1400, 3)
    expect(INSIDE4 in t.net.srv.ip('addr show dev tun0'), 'the device has no address')


@case(ours=True, engine=False, quick=False)
def steering_left_on_the_device(t):
    """a persistent device keeps the program of a server that was killed: the next one takes it off or replaces it"""
    t.net.srv.ip('tuntap add dev tun0 mode tun multi_queue')
    start(t, 'dev tun0', name='first', engine='auto').process.popen.kill()
    server = start(t, 'dev tun0', 'disable-feature steering-ebpf', name='second', engine='auto')
    clients = connect(t, range(CLIENTS))
    count = packets_down(t, server, clients)
    expect(count > FLOWS * ROUNDS, f'only {count} packets were handed over')
    for c in clients:
        c.stop()
    server.process.popen.kill()
    server = start(t, 'dev tun0', name='third', engine='auto')
    again = connect(t, range(CLIENTS), [c.ns for c in clients])
    expect_owners_read(t, server, again)
