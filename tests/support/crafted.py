# SPDX-License-Identifier: Apache-2.0
"""Inner packets made byte by byte, put into a client's tun device, and taken up behind the server."""
import ipaddress
import socket
import struct
import threading
import time

ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 0x0003, 0x0800, 0x86DD
TCP, UDP, DSTOPTS = 6, 17, 60
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << n for n in range(8))
PAUSE_EVERY = 32


def checksum(data):
    if len(data) % 2:
        data += b'\0'
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def packed(address):
    return ipaddress.ip_address(address).packed


def ip_header(source, to, protocol, length, ident=0, ttl=64, tos=0, df=True, options=b''):
    """Of a payload of `length` bytes. IPv6: `ident` is the flow label, `options` a header of destination options."""
    source, to = packed(source), packed(to)
    if len(source) == 16:
        first = 0x60000000 | tos << 20 | ident & 0xfffff
        head = struct.pack('!IHBB', first, length + len(options), DSTOPTS if options else protocol, ttl) + source + to
        return head + (bytes([protocol]) + options[1:] if options else b'')
    head = struct.pack('!BBHHHBBH', 0x40 | 5 + len(options) // 4, tos, 20 + len(options) + length, ident & 0xffff,
                       0x4000 if df else 0, ttl, protocol, 0) + source + to + options
    return head[:10] + struct.pack('!H', checksum(head)) + head[12:]


def pseudo(source, to, protocol, length):
    return packed(source) + packed(to) + struct.pack('!HH', protocol, length)


def tcp(source, to, ports, seq, payload, flags=ACK, ack=1, window=1000, tcp_options=b'', urgent=0, bad=0, **ip):
    """bad: what the checksum is wrong by."""
    head = struct.pack('!HHIIBBHHH', *ports, seq & 0xffffffff, ack, (5 + len(tcp_options) // 4) << 4, flags, window, 0,
                       urgent)
    segment = head + tcp_options + payload
    right = checksum(pseudo(source, to, TCP, len(segment)) + segment)
    segment = segment[:16] + struct.pack('!H', (right + bad) & 0xffff) + segment[18:]
    return ip_header(source, to, TCP, len(segment), **ip) + segment


def udp(source, to, ports, payload, bad=0, has_checksum=True, **ip):
    datagram = struct.pack('!HHHH', *ports, 8 + len(payload), 0) + payload
    right = checksum(pseudo(source, to, UDP, len(datagram)) + datagram) or 0xffff
    if has_checksum:
        datagram = datagram[:6] + struct.pack('!H', (right + bad) & 0xffff) + datagram[8:]
    return ip_header(source, to, UDP, len(datagram), **ip) + datagram


def forwarded(packet):
    """The same packet a hop further."""
    out = bytearray(packet)
    if packet[0] >> 4 == 6:
        out[7] -= 1
        return bytes(out)
    head = (packet[0] & 15) * 4
    out[8] -= 1
    out[10:12] = b'\0\0'
    out[10:12] = struct.pack('!H', checksum(bytes(out[:head])))
    return bytes(out)


def comparable(packet):
    """Without what may change on the way: the identification of an IPv4 packet that is never fragmented means
    nothing (RFC 6864), and is counted up where such packets were merged."""
    if packet[0] >> 4 == 6 or not packet[6] & 0x40:
        return packet
    return packet[:4] + b'\0\0' + packet[6:10] + b'\0\0' + packet[12:]


def inject(ns, dev, packets):
    """Put packets into the queue of a tun device; a little slower than its owner takes them."""
    with ns.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as s:
        for n, p in enumerate(packets):
            s.sendto(p, (dev, ETH_P_IPV6 if p[0] >> 4 == 6 else ETH_P_IP))
            if n % PAUSE_EVERY == PAUSE_EVERY - 1:
                time.sleep(0.002)


class Taker:
    """What IP packets to `addresses` come in on a device."""

    def __init__(self, ns, dev, addresses):
        self.socket = ns.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((dev, ETH_P_ALL))
        self.socket.settimeout(0.1)
        self.wanted, self.packets, self.is_over = {packed(a) for a in addresses}, [], False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.is_over:
            try:
                p = self.socket.recv(65536)
            except OSError:  # nothing came, or the link went
                continue
            if (p[16:20] if p[0] >> 4 == 4 else p[24:40]) in self.wanted:
                self.packets.append(p)

    def take(self, count, quiet=0.5):
        """Until `count` packets came, or none for `quiet` seconds; those since the last call."""
        had, since = 0, time.monotonic()
        while len(self.packets) < count and time.monotonic() - since < quiet:
            if len(self.packets) != had:
                had, since = len(self.packets), time.monotonic()
            time.sleep(0.01)
        out, self.packets = self.packets, []
        return out

    def stop(self):
        self.is_over = True
        self.thread.join()
        self.socket.close()
