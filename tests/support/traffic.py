# SPDX-License-Identifier: Apache-2.0
"""Bytes through the tunnel that are counted and hashed, and a relay that can misbehave."""
import collections
import hashlib
import os
import select
import socket
import threading
import time

from lab import Failure, expect

BLOCK = 1 << 16


class Transfer:
    """`total` bytes over one TCP connection from namespace to namespace, spread over `seconds`
    (0: as fast as it goes). wait() compares the two SHA-256. options: [(level, name, value)] of both
    sockets. is_urgent: the last byte of each block is urgent data, and stays in its place."""

    def __init__(self, source, sink, sink_address, total, seconds=0, options=(), is_urgent=False):
        family = socket.AF_INET6 if ':' in sink_address else socket.AF_INET
        self.total, self.seconds, self.error, self.is_urgent = total, seconds, None, is_urgent
        self.sent_hash, self.got_hash, self.sent, self.got = hashlib.sha256(), hashlib.sha256(), 0, 0
        self.listener = sink.socket(family)
        self.listener.bind((sink_address, 0))
        self.listener.listen(1)
        self.listener.settimeout(15)
        self.out = source.socket(family)
        self.out.settimeout(60)
        for s in (self.listener, self.out):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
            for option in options:
                s.setsockopt(*option)
        self.threads = [threading.Thread(target=self._guard, args=(f,), daemon=True) for f in (self._take, self._give)]
        for t in self.threads:
            t.start()

    def _guard(self, work):
        try:
            work()
        except OSError as e:
            self.error = self.error or e

    def _give(self):
        self.out.connect(self.listener.getsockname()[:2])
        base, start, n = os.urandom(BLOCK), time.monotonic(), 0
        with self.out:
            while self.sent < self.total:
                block = (n.to_bytes(8, 'big') + base[8:])[:self.total - self.sent]
                self.sent_hash.update(block)
                self._put(block)
                self.sent += len(block)
                n += 1
                ahead = self.seconds * self.sent / self.total - (time.monotonic() - start)
                if ahead > 0:
                    time.sleep(ahead)

    def _put(self, block):
        if self.is_urgent:
            self.out.sendall(block[:-1])
            self.out.send(block[-1:], socket.MSG_OOB)
        else:
            self.out.sendall(block)

    def _take(self):
        with self.listener:
            conn, _ = self.listener.accept()
        with conn:
            conn.settimeout(60)
            while True:
                block = conn.recv(1 << 18)
                if not block:
                    return
                self.got_hash.update(block)
                self.got += len(block)

    def is_running(self):
        return any(t.is_alive() for t in self.threads)

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        for t in self.threads:
            t.join(max(0.1, end - time.monotonic()))
        if self.error or self.is_running():
            raise Failure(f'transfer: {self.error or "not finished"} after {self.got} of {self.total} bytes')
        expect(self.got == self.total, f'transfer: {self.got} of {self.total} bytes arrived')
        expect(self.sent_hash.digest() == self.got_hash.digest(), 'transfer: SHA-256 differs')


class Relay:
    """A UDP relay beside the client, as a NAT would be. Its outside port can change at any time;
    it remembers what it passed, so that packets can be repeated or forged from the right address."""

    def __init__(self, ns, server, family=socket.AF_INET):
        self.ns, self.server, self.family = ns, server, family
        self.inside = ns.socket(family, socket.SOCK_DGRAM)
        self.inside.bind(('127.0.0.1' if family == socket.AF_INET else '::1', 0))
        self.port = self.inside.getsockname()[1]
        self.client, self.stopping, self.hold = None, False, False
        self.up = collections.deque(maxlen=4000)
        self.down = collections.deque(maxlen=4000)
        self.outside = self._fresh()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _fresh(self):
        s = self.ns.socket(self.family, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        s.connect(self.server)
        return s

    def rebind(self):
        """A new outside port, as after a NAT's time-out."""
        self.outside = self._fresh()

    def send(self, data):
        """To the server, from the client's outside address."""
        try:
            self.outside.send(data)
        except OSError:
            pass

    def _run(self):
        while not self.stopping:
            outside = self.outside
            for s in select.select([self.inside, outside], [], [], 0.05)[0]:
                try:
                    if s is self.inside:
                        data, self.client = s.recvfrom(65536)
                        self.up.append(data)
                        if not self.hold:
                            outside.send(data)
                    else:
                        data = s.recv(65536)
                        self.down.append(data)
                        if self.client and not self.hold:
                            self.inside.sendto(data, self.client)
                except OSError:
                    pass

    def stop(self):
        self.stopping = True
        self.thread.join()
