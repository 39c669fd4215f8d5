# SPDX-License-Identifier: Apache-2.0
"""Data packets on the wire outside, as tcpdump sees them: who, which key, which packet-id."""
import collections
import struct

from lab import expect

DATA_V1, DATA_V2 = 6, 9
SNAPLEN = 128
KEYS_ALIVE = 2  # the primary and the lame-duck key (wire.md, section 6)

Packet = collections.namedtuple('Packet', 'is_down peer peer_id opcode key_id packet_id size')


class Capture:
    """tcpdump on one device. The device segments nothing after the capture: a super-datagram is cut
    before it, so that every datagram is seen by itself."""

    def __init__(self, lab, ns, dev, port):
        self.path, self.port, self.dev = lab.path(f'{ns.name}-{dev}.pcap'), port, dev
        ns.run(f'ethtool -K {dev} tx-udp-segmentation off gso off', check=False)
        self.process = lab.start(ns, f'tcpdump-{dev}', ['tcpdump', '-i', dev, '-n', '-Z', 'root', '-U', '-B', '32768',
                                                        '-s', str(SNAPLEN), '-w', self.path, f'udp port {port}'])
        self.process.wait_log('listening on', 10)

    def stop(self):
        """The data packets, in the order of the wire."""
        self.process.stop()
        with open(self.path, 'rb') as f:
            return list(data_packets(f.read(), self.port))


def frames(pcap):
    """(bytes, length on the wire) of each frame."""
    expect(struct.unpack_from('<I', pcap)[0] in (0xa1b2c3d4, 0xa1b23c4d), 'this is no capture')
    at = 24
    while at + 16 <= len(pcap):
        kept, length = struct.unpack_from('<II', pcap, at + 8)
        yield pcap[at + 16:at + 16 + kept], length
        at += 16 + kept


def udp_of(frame):
    """(source, destination, offset of the UDP header), or None for later fragments and the rest."""
    ethertype = struct.unpack_from('!H', frame, 12)[0]
    if ethertype == 0x0800:
        if struct.unpack_from('!H', frame, 20)[0] & 0x1fff:
            return None
        return frame[26:30], frame[30:34], 14 + (frame[14] & 15) * 4
    if ethertype == 0x86dd and frame[20] == 17:
        return frame[22:38], frame[38:54], 54
    if ethertype == 0x86dd and frame[20] == 44 and not struct.unpack_from('!H', frame, 56)[0] & 0xfff8:
        return frame[22:38], frame[38:54], 62
    return None


def data_packets(pcap, port):
    for frame, _ in frames(pcap):
        found = udp_of(frame)
        if not found:
            continue
        source, destination, at = found
        ports = struct.unpack_from('!HH', frame, at)
        size = struct.unpack_from('!H', frame, at + 4)[0] - 8
        is_down = ports[0] == port
        peer = (destination, ports[1]) if is_down else (source, ports[0])
        opcode, key_id = frame[at + 8] >> 3, frame[at + 8] & 7
        if opcode == DATA_V2:
            peer_id, packet_id = int.from_bytes(frame[at + 9:at + 12], 'big'), struct.unpack_from('!I', frame, at + 12)[0]
        elif opcode == DATA_V1:
            peer_id, packet_id = None, struct.unpack_from('!I', frame, at + 9)[0]
        else:
            continue
        yield Packet(is_down, peer, peer_id, opcode, key_id, packet_id, size)


class Keys:
    """Packet-ids of one direction of one peer, by key: a key-id comes again after seven renegotiations, and
    is another key then."""

    def __init__(self):
        self.alive, self.started = collections.OrderedDict(), 0

    def add(self, packet):
        """What is wrong with this packet, or None."""
        if packet.key_id not in self.alive:
            self.alive[packet.key_id] = (set(), [0])
            self.started += 1
            while len(self.alive) > KEYS_ALIVE:
                self.alive.popitem(last=False)
        seen, last = self.alive[packet.key_id]
        is_repeated, is_behind = packet.packet_id in seen, packet.packet_id < last[0]
        seen.add(packet.packet_id)
        last[0] = max(last[0], packet.packet_id)
        return 'repeated' if is_repeated else 'behind' if is_behind else None


def check_packet_ids(packets):
    """No (key, packet-id) occurs twice, each way; the server's run in order. Returns how many keys each
    (is_down, peer, peer-id) used."""
    keys = collections.defaultdict(Keys)
    for p in packets:
        wrong = keys[p.is_down, p.peer, p.peer_id].add(p)
        expect(wrong != 'repeated', f'a packet-id was used twice: {p}')
        expect(wrong != 'behind' or not p.is_down, f'a packet-id of the server out of order: {p}')
    return {who: k.started for who, k in keys.items()}


