# SPDX-License-Identifier: Apache-2.0
"""Numbered UDP datagrams through the tunnel, every byte of which is compared."""
import hashlib
import os
import socket
import threading
import time

from lab import expect

SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
HEAD = 4
BURST_MAX = 32
QUIET_SECONDS = 0.7
BUFFER = 16 << 20
BASE = os.urandom(1 << 17)


def content(number, size):
    """What datagram `number` holds: its number and then random bytes of its own."""
    start = number * 61 % (1 << 16)
    return number.to_bytes(HEAD, 'big') + BASE[start:start + size - HEAD]


class Datagrams:
    """Datagrams of the given sizes (at least 4), `rate` a second, from namespace to namespace.
    options: [(level, name, value)] of the sender's socket. group: so many in one call, as one piece (with
    UDP_SEGMENT among the options; sizes must be equal then)."""

    def __init__(self, source, sink, address, sizes, rate=2000, options=(), source_address=None, group=1):
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        self.sizes, self.rate, self.group = list(sizes), rate, group
        self.got, self.repeated, self.wrong, self.error = set(), 0, [], None
        self.digests = [None] * len(self.sizes)
        self.sink = sink.socket(family, socket.SOCK_DGRAM)
        self.sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        self.sink.bind((address, 0))
        self.sink.settimeout(0.1)
        self.source = source.socket(family, socket.SOCK_DGRAM)
        self.source.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
        for level, name, value in options:
            self.source.setsockopt(level, name, value)
        if source_address:
            self.source.bind((source_address, 0))
        self.source.connect(self.sink.getsockname()[:2])
        self.is_over = False
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._take, self._give)]
        for t in self.threads:
            t.start()

    def _give(self):
        try:
            self._send([n for n in range(len(self.sizes))])
        except OSError as e:
            self.error = e

    def _send(self, numbers):
        start, sent = time.monotonic(), 0
        while sent < len(numbers):
            due = min(int((time.monotonic() - start) * self.rate) + 1, sent + BURST_MAX * self.group, len(numbers))
            while sent < due:
                some = numbers[sent:sent + self.group]
                self.source.send(b''.join(content(n, self.sizes[n]) for n in some))
                sent += len(some)
            time.sleep(0.001)

    def _take(self):
        while not self.is_over:
            try:
                data = self.sink.recv(65536)
            except TimeoutError:
                continue
            n = int.from_bytes(data[:HEAD], 'big')
            if n >= len(self.sizes) or data != content(n, self.sizes[n]):
                self.wrong.append(data[:16].hex() + f' ({len(data)} bytes)')
            elif n in self.got:
                self.repeated += 1
            else:
                self.digests[n] = hashlib.sha256(data).digest()
                self.got.add(n)

    def missing(self):
        return [n for n in range(len(self.sizes)) if n not in self.got]

    def _settle(self):
        """Until all are there or nothing comes any more."""
        count, since = len(self.got), time.monotonic()
        while len(self.got) < len(self.sizes) and time.monotonic() - since < QUIET_SECONDS:
            time.sleep(0.02)
            if len(self.got) != count:
                count, since = len(self.got), time.monotonic()

    def wait(self, rounds=1):
        """Until everything was sent and came or was lost; what is missing is sent again, up to `rounds` in
        all. Nothing may have come that was not sent. Returns how many are missing."""
        self.threads[1].join()
        self._settle()
        for _ in range(rounds - 1):
            if not self.missing():
                break
            self._send(self.missing())
            self._settle()
        self.is_over = True
        self.threads[0].join()
        self.sink.close()
        self.source.close()
        expect(not self.error, f'datagrams: {self.error}')
        expect(not self.wrong, f'datagrams came that were never sent: {self.wrong[:5]}')
        return len(self.missing())

    def wait_all(self, rounds=1):
        """The same; all must have come, and their SHA-256 is that of what was sent."""
        self.wait(rounds)
        gone = self.missing()
        expect(not gone, f'{len(gone)} of {len(self.sizes)} datagrams lost, of sizes '
                         f'{sorted({self.sizes[n] for n in gone})[:40]}')
        sent = hashlib.sha256(b''.join(hashlib.sha256(content(n, s)).digest() for n, s in enumerate(self.sizes)))
        expect(sent.digest() == hashlib.sha256(b''.join(self.digests)).digest(), 'datagrams: SHA-256 differs')
