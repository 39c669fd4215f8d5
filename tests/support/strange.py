# SPDX-License-Identifier: Apache-2.0
"""Packets of protocols that are neither TCP nor UDP."""
import os
import socket

from lab import expect

SIZES = (4, 20, 100, 576, 1000, 1400)


class Strange:
    """Raw packets of one protocol number from namespace to namespace, compared byte by byte."""

    def __init__(self, source, sink, address, protocol):
        self.family = socket.AF_INET6 if ':' in address else socket.AF_INET
        self.address, self.protocol = address, protocol
        self.sink = sink.socket(self.family, socket.SOCK_RAW, protocol)
        self.sink.settimeout(2)
        self.source = source.socket(self.family, socket.SOCK_RAW, protocol)

    def _receive(self):
        data = self.sink.recv(65536)
        return data if self.family == socket.AF_INET6 else data[(data[0] & 15) * 4:]

    def check(self, rounds=3):
        with self.sink, self.source:
            for size in SIZES:
                # The first bytes are zero: no flags of GRE, no chunk of SCTP, so that nobody answers.
                data = bytes(4) + os.urandom(size - 4)
                expect(self._passes(data, rounds), f'protocol {self.protocol} to {self.address}: {size} bytes did not pass')

    def _passes(self, data, rounds):
        for _ in range(rounds):
            self.source.sendto(data, (self.address, 0))
            try:
                if self._receive() == data:
                    return True
            except TimeoutError:
                pass
        return False
