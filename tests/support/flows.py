# SPDX-License-Identifier: Apache-2.0
"""Flows of inner packets with whatever may change from packet to packet: what can be merged, what must not be,
and what is no packet at all. The same `random` gives the same flows."""
import struct

import crafted
from crafted import ACK, CWR, ECE, FIN, PSH, RST, SYN, URG

SIZES = (0, 1, 2, 100, 536, 536, 536, 1000, 1200, 1200, 1200, 1200)
FLAGS = (ACK,) * 12 + (ACK | PSH, ACK | PSH, ACK | ECE, ACK | CWR, ACK | URG, ACK | FIN, ACK | RST, SYN, 0, 0xff)
DSTOPTS = bytes([0, 0, 1, 4, 0, 0, 0, 0])


def timestamps(value):
    return b'\x01\x01\x08\x0a' + struct.pack('!II', value & 0xffffffff, 7)


class Flow:
    """One connection or one pair of ports; step() makes its next packet. Most steps change nothing but the sequence
    number, so that there is something to merge."""

    def __init__(self, rng, source, to, port, is_udp):
        self.rng, self.source, self.to, self.is_udp = rng, source, to, is_udp
        self.ports, self.is_ipv6 = (port, 4000 + port % 100), ':' in source
        self.seq = rng.choice((0, 1000, 0xffffffff - 5000, rng.getrandbits(32)))
        self.ident, self.stride = rng.getrandbits(16), rng.choice((1, 1, 1, 0, 7))
        self.size = rng.choice((100, 536, 1000, 1200))
        self.ip = {'ttl': 64, 'tos': rng.choice((0, 0, 2, 0x28)), 'df': rng.random() < 0.8, 'options': b''}
        if rng.random() < 0.1:
            self.ip['options'] = DSTOPTS if self.is_ipv6 else b'\x01\x01\x01\x01'
        self.ack, self.window, self.stamp = 1, 1000, rng.choice((None, 77))

    def _drift(self):
        rng = self.rng
        if rng.random() < 0.04:
            self.ip[rng.choice(('ttl', 'tos'))] = rng.choice((3, 33, 63))
        if rng.random() < 0.03:
            self.ip['df'] = not self.ip['df']
        if rng.random() < 0.05:
            self.ack += 1000
        if rng.random() < 0.03:
            self.window += 1
        if self.stamp is not None and rng.random() < 0.05:
            self.stamp += 1
        if rng.random() < 0.05:
            self.seq += rng.choice((-1200, 1, 5000))
        if rng.random() < 0.04:
            self.ident += 3

    def step(self):
        rng = self.rng
        self._drift()
        size = rng.choice(SIZES) if rng.random() < 0.1 else self.size
        payload = rng.randbytes(size)
        bad = rng.choice((1, 0x8000)) if rng.random() < 0.03 else 0
        ip = dict(self.ip, ident=5 if self.is_ipv6 else self.ident)
        self.ident += self.stride
        if self.is_udp:
            has_checksum = self.is_ipv6 or rng.random() > 0.03
            return crafted.udp(self.source, self.to, self.ports, payload, bad=bad, has_checksum=has_checksum, **ip)
        flags = rng.choice(FLAGS) if rng.random() < 0.2 else ACK
        options = timestamps(self.stamp) if self.stamp is not None else b''
        seq, self.seq = self.seq, self.seq + size
        return crafted.tcp(self.source, self.to, self.ports, seq, payload, flags, self.ack, self.window, options,
                           urgent=1 if flags & URG else 0, bad=bad, **ip)


def mixture(rng, pairs, count):
    """`count` packets of a handful of flows between the (source, to) pairs, in runs, all mixed."""
    flows = [Flow(rng, *rng.choice(pairs), 1000 + n, rng.random() < 0.4) for n in range(rng.randint(1, 12))]
    out = []
    while len(out) < count:
        flow = rng.choice(flows)
        out += [flow.step() for _ in range(rng.choice((1, 1, 2, 5, 20)))]
    return out[:count]


def key(packet):
    """Which flow a packet belongs to; None if that cannot be told."""
    at = 40 if packet[0] >> 4 == 6 else (packet[0] & 15) * 4
    if packet[0] >> 4 == 6 and packet[6] == crafted.DSTOPTS:
        at += 8
    return packet[0] >> 4, bytes(packet[at:at + 2])


def mutilated(rng, packet):
    """A packet that is wrong in its structure: lengths, offsets, versions, protocols, or cut off."""
    out = bytearray(packet)
    how = rng.randrange(5)
    if how == 0:
        return bytes(out[:rng.randrange(1, len(out))])
    if how == 1:
        return bytes(out) + rng.randbytes(rng.randrange(1, 40))
    head = min(len(out), 60)
    for _ in range(rng.choice((1, 1, 2, 8))):
        out[rng.randrange(head)] = rng.choice((0, 1, 0x0f, 0x45, 0x4f, 0x60, 0x7f, 0xff, rng.getrandbits(8)))
    # The source address stays, or the packet would be refused for that.
    start, end = (12, 16) if packet[0] >> 4 == 4 else (8, 24)
    out[start:end] = packet[start:end]
    return bytes(out)
