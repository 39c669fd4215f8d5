# SPDX-License-Identifier: Apache-2.0
"""Loads by perf/swarm, many emulated clients in one process, and perf/source, which sends to them from
the server's side. Both saturate the server, and keep just below what overflows its queues.

Without merging on the link swarm sends single datagrams and source single UDP packets; with it both
hand super-packets to the kernel.
"""
import ipaddress
import json

import lab
import load
import meter

PING_MS = 5       # between the probes of all clients together
TCP_SIZE = 1350   # payload of a segment that fills a datagram of 1500
WARMUP_S = 1.0    # until the rate is found
SIDE_S = 4        # the small flow of a mixed load begins earlier and ends later by together that much
CONNECT_S = 120


class Swarm:
    """One running swarm. Its end is awaited with result()."""

    def __init__(self, stage, clients, words, nice=0):
        keys = stage.bench.keys
        argv = [stage.bench.swarm, '--server', f'10.71.{stage.swarm_ns.n}.1', '--ca', keys.path('ca.crt'),
                '--cert', keys.path('client1.crt'), '--key', keys.path('client1.key'), '--clients', str(clients),
                '--cpu-of', str(stage.pid), '--json', '--quiet', *words]
        prefix = ['nice', '-n', str(nice)] if nice else []
        self.process = stage.world.start(stage.swarm_ns, 'swarm', prefix + argv)

    def wait(self, word, seconds=CONNECT_S):
        lab.wait_until(self._has(word), seconds, f'swarm did not say {word}', every=0.005)

    def _has(self, word):
        def look():
            found = self.process.find(f'^{word}')
            lab.expect(found or self.process.is_running(), f'swarm ended before it was {word}: {self.process.text()[-300:]}')
            return found
        return look

    def result(self, seconds=60):
        self.process.wait_exit(seconds)
        try:
            return json.loads(self.process.text().strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise lab.Failure(f'swarm: {self.process.text()[-300:]}') from None


def settled(stage):
    """The addresses in use, when those who took their leave are forgotten: both servers do that 5 s later. New clients
    then get neighbouring addresses."""
    usual = 1 if stage.client else 0
    return lab.wait_until(lambda: [x] if len(x := stage.addresses()) <= usual else None, 12, 'earlier clients stay', 0.1)[0]


def newcomers(stage, known, clients):
    """The addresses, in order, of those who came since `known`, when there are as many."""
    def fresh():
        found = stage.addresses() - known
        return found if len(found) >= clients else None
    return sorted(ipaddress.IPv4Address(x) for x in lab.wait_until(fresh, 10, 'the clients have no addresses'))


class Source:
    """One running source, sending to the clients that came since `known`."""

    def __init__(self, stage, known, clients, words):
        new = newcomers(stage, known, clients)
        lab.expect(int(new[-1]) - int(new[0]) + 1 == len(new), f'addresses have gaps: {new[0]} to {new[-1]}')
        argv = [stage.bench.source, '--to', f'{new[0]}-{new[-1]}', '--json', '--quiet', *words]
        self.process = stage.world.start(stage.srv, 'source', argv)

    def result(self, seconds=60):
        self.process.wait_exit(seconds)
        try:
            return json.loads(self.process.text().strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise lab.Failure(f'source: {self.process.text()[-300:]}') from None


def shape(what):
    """Words of both programs for the packets of a load."""
    return ['--udp', '--size', str(what.size)] if load.is_udp(what) else ['--tcp', '--size', str(TCP_SIZE)]


def clients_of(what):
    return what.streams or 10


def swarm_words(stage, what, seconds, ping=True):
    clients = clients_of(what)
    words = [*shape(what), '--seconds', str(seconds), '--warmup', str(WARMUP_S)]
    words += ['--ping', stage.target, '--ping-interval-ms', str(PING_MS * clients)] if ping else []
    return words + ([] if stage.is_merging else ['--no-gso'])


def source_words(stage, what, seconds):
    return [*shape(what), '--seconds', str(seconds), '--warmup', '0'] + \
        (['--no-gso'] if load.is_udp(what) and not stage.is_merging else [])


def delivered(before, after, name):
    """Payload bytes at the sink: each packet, also a super-packet, has one header."""
    packets, size = (b - a for a, b in zip(before[name], after[name]))
    return size - packets * (28 if name == 'udp' else 40)


def rtt_of(data):
    rtt = (data.get('ping') or {}).get('rtt_us')
    return {'p50': rtt['p50'], 'p99': rtt['p99']} if rtt else None


def watch(stage, crowd, seconds):
    """What is spent, and what reaches the sink, while the swarm measures."""
    crowd.wait('measuring')
    window, before = meter.Window(stage.pid), stage.sink_counts()
    crowd.wait('measured', seconds + 10)
    return window.end(), before, stage.sink_counts()


def measure_up(stage, what, seconds):
    crowd = Swarm(stage, clients_of(what), ['--up', '--fit', str(stage.pid), *swarm_words(stage, what, seconds)])
    spent, before, after = watch(stage, crowd, seconds)
    data = crowd.result()['data']
    arrived = delivered(before, after, 'udp') + delivered(before, after, 'tcp')
    if what.key == 'mixed':
        sent, came = load.MIXED_RATE * what.size * spent.seconds, delivered(before, after, 'udp')
    else:
        sent, came = data['up']['bytes'] * spent.seconds / data['seconds'], arrived
    return load.sample(what, spent, arrived, spent.seconds, max(0.0, 100 * (1 - came / sent)), rtt_of(data))


def measure_down(stage, what, seconds):
    known = stage.addresses() if what.key == 'mixed' else settled(stage)
    crowd = Swarm(stage, clients_of(what), ['--down', *swarm_words(stage, what, seconds)])
    crowd.wait('ready')
    source = Source(stage, known, clients_of(what), ['--fit', *source_words(stage, what, seconds + WARMUP_S + 1)])
    spent, _, _ = watch(stage, crowd, seconds)
    data = crowd.result()['data']
    source.result()
    arrived = data['down']['bytes'] * spent.seconds / data['seconds']
    return load.sample(what, spent, arrived, spent.seconds, data['down']['loss_percent'], rtt_of(data))


class Side:
    """The small datagrams of a mixed load: one more client."""

    def __init__(self, stage, what, direction, seconds):
        self.direction = direction
        flow = load.Load('side', '', 0, what.size)
        mbit = str(load.MIXED_RATE * what.size * 8 / 1e6)
        known = settled(stage) if direction == load.DOWN else None
        words = [*shape(flow), '--seconds', str(seconds + SIDE_S), '--warmup', '0.2']
        self.crowd = Swarm(stage, 1, words + (['--up', '--up-mbit', mbit] if direction == load.UP else ['--down']))
        self.crowd.wait('ready')
        self.source = None
        if direction == load.DOWN:
            self.source = Source(stage, known, 1, [*shape(flow), '--mbit', mbit, '--seconds', str(seconds + SIDE_S + 1)])

    def add_to(self, what, sample, seconds):
        """The sample of the large flow with this one's bytes and loss."""
        data = self.crowd.result()['data']
        if self.direction == load.UP:
            return sample  # counted at the sink already
        self.source.result()
        mine = data['down']['bytes'] / data['seconds'] * seconds
        whole = sample['mbit'] * 1e6 / 8 * seconds
        for key in ('server', 'machine'):
            sample[key] *= whole / (whole + mine)
        sample['mbit'] = (whole + mine) * 8 / seconds / 1e6
        sample['loss'] = data['down']['loss_percent']
        return sample


def measure(stage, what, direction, seconds):
    """One row once."""
    side = Side(stage, what, direction, seconds) if what.key == 'mixed' else None
    got = (measure_up if direction == load.UP else measure_down)(stage, what, seconds)
    return side.add_to(what, got, seconds) if side else got
