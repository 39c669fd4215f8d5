# SPDX-License-Identifier: Apache-2.0
"""What is sent: the rows of the report, and what one measurement of a row yields."""
import collections

# streams: TCP connections (swarm: clients); size: bytes of a datagram's payload; both in a mixed load
Load = collections.namedtuple('Load', 'key title streams size')

ALL = [
    Load('tcp1', 'TCP 1 stream', 1, 0),
    Load('tcp10', 'TCP -P 10', 10, 0),
    Load('udp64', 'UDP 64 B', 0, 64),
    Load('udp500', 'UDP 500 B', 0, 500),
    Load('udp1400', 'UDP 1400 B', 0, 1400),
    Load('mixed', 'mixed', 4, 200),
]
BY_KEY = {x.key: x for x in ALL}
UP, DOWN = 'up', 'down'
MIXED_RATE = 5000  # datagrams a second beside the TCP streams


def is_udp(load):
    """Counted in datagrams; everything else in bytes."""
    return load.streams == 0


def unit(load):
    return 'us' if is_udp(load) else 's/GB'


def amount(load, payload_bytes):
    """How many units (GB, or millions of datagrams) these bytes of payload are."""
    return payload_bytes / load.size / 1e6 if is_udp(load) else payload_bytes / 1e9


def sample(load, spent, payload_bytes, seconds, loss, rtt):
    """One measurement: throughput, what the server and the machine spent a unit, loss in percent, RTT in us.
    spent: the meter's, while payload_bytes arrived; seconds: of the transfer."""
    units = amount(load, payload_bytes)
    has_server = spent.process is not None
    return {'mbit': payload_bytes * 8 / seconds / 1e6, 'rate': units * 1e6 / seconds if is_udp(load) else None,
            'server': spent.process / units if has_server else None, 'machine': spent.machine / units,
            'server_cores': spent.process / spent.seconds if has_server else None, 'loss': loss,
            'rtt_p50': rtt and rtt['p50'], 'rtt_p99': rtt and rtt['p99']}
