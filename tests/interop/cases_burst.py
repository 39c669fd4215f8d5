# SPDX-License-Identifier: Apache-2.0
"""Bursts beyond what the kernel queues for us: what they lose is counted.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24 ---  c0 (stock client, 10.80.0.2)
                             --- veth 10.71.1.0/24 ---  c1: a stranger
    The server is stopped (SIGSTOP) while the burst arrives, so that nothing depends on speed.
"""
import os
import signal
import socket
import time

import kernel
from case import case, expect, wait_until
from vpn import PORT


def strange_burst(t, count):
    """So many datagrams for an unknown peer-id (one worker's socket) while the server stands still."""
    server, ns = t.servers[0], t.net.client()
    with ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((f'10.71.{ns.n}.1', PORT))
        server.process.signal(signal.SIGSTOP)
        time.sleep(0.1)
        for _ in range(count):
            s.send(bytes([9 << 3, 0, 0, 5]) + os.urandom(1300))
        server.process.signal(signal.SIGCONT)


def run_burst(t, rcvbuf, count):
    """(received, dropped) as the metrics tell."""
    server = t.server(f'rcvbuf {rcvbuf}')
    client = t.client()
    client.ping(100)

    def told():
        m = server.metrics()
        return (m.sum('shardvpn_dropped_packets_total', reason='unknown_peer'),
                m.sum('shardvpn_socket_receive_drops_total'))
    strange_burst(t, count)
    wait_until(lambda: sum(told()) >= count, 5, lambda: f'{told()} of {count} are accounted for')
    client.ping(100)
    return told()


@case(ours=True, both=True)
def burst_overflows_receive_buffer(t):
    """a burst beyond a small receive buffer: what it loses is counted"""
    _, dropped = run_burst(t, 65536, 2000)
    expect(dropped > 0, 'a buffer of 64 KiB took 2.6 MB')


@case(ours=True)
def burst_fits_receive_buffer(t):
    """the same burst with a large rcvbuf: nothing is lost"""
    received, dropped = run_burst(t, 16 << 20, 2000)
    expect((received, dropped) == (2000, 0), f'{received} received, {dropped} dropped')


@case(ours=True, both=True)
def burst_overflows_tun_queue(t):
    """a burst into the tun device while the server stands still: what the queue loses is counted"""
    server = t.server()
    client = t.client()
    address, count = client.address(), 6000
    with t.net.srv.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        server.process.signal(signal.SIGSTOP)
        time.sleep(0.1)
        for _ in range(count):
            s.sendto(bytes(200), (address, 9))
        server.process.signal(signal.SIGCONT)
    lost = kernel.device_counts(t.net.srv, 'tun0')[1]['drop']
    expect(lost > 0, 'the queue took everything')
    wait_until(lambda: server.metrics().sum('shardvpn_tun_queue_drops_total') == lost, 5,
               lambda: f'the kernel lost {lost}, told are {server.metrics().sum("shardvpn_tun_queue_drops_total")}')
    client.ping(100)
