# SPDX-License-Identifier: Apache-2.0
"""Loads by iperf3 through one stock client (or over the bare link).

UDP is offered at the same pace to all contestants: one that the stock pair carries.
"""
import json
import subprocess

import lab
import load
import meter
import prober
import stage as stages

DATAGRAMS_A_PROCESS = 60000  # a second: more than this one iperf3 cannot pace


class Run:
    """Several iperf3 clients at once, each with words of its own."""

    def __init__(self, stage, jobs, seconds):
        self.seconds = seconds
        self.processes = []
        for port, words in zip(stages.IPERF_PORTS, jobs):
            argv = ['iperf3', '-J', '-c', stage.target, '-p', str(port), '-t', str(seconds), *words]
            self.processes.append(subprocess.Popen(stage.client_ns.argv(argv), stdin=subprocess.DEVNULL,
                                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def ends(self):
        """What each says of the whole, in order."""
        try:
            return [self._end(p) for p in self.processes]
        finally:
            for p in self.processes:
                if p.poll() is None:
                    p.kill()

    def _end(self, p):
        try:
            out, err = p.communicate(timeout=self.seconds + 30)
            result = json.loads(out)
        except (ValueError, subprocess.TimeoutExpired) as e:
            raise lab.Failure(f'iperf3: {e}') from None
        if 'error' in result:
            raise lab.Failure(f'iperf3: {result["error"]} {err}')
        return result['end']


def tcp_words(streams, direction, mbit=0):
    """mbit: all streams together, 0 flat out."""
    words = ['-P', str(streams)] + (['-R'] if direction == load.DOWN else [])
    return words + (['-b', f'{mbit / streams:.3f}M'] if mbit else [])


def udp_words(size, rate, direction):
    words = ['-u', '-l', str(size), '-b', str(int(rate * size * 8))]
    return words + (['-R'] if direction == load.DOWN else [])


def jobs_of(bench, what, direction):
    if what.key == 'mixed':
        return [tcp_words(what.streams, direction), udp_words(what.size, load.MIXED_RATE, direction)]
    if not load.is_udp(what):
        return [tcp_words(what.streams, direction)]
    count = max(1, -(-bench.udp_rate // DATAGRAMS_A_PROCESS))
    return [udp_words(what.size, bench.udp_rate / count, direction)] * count


def udp_total(end):
    """(bytes that arrived, seconds, datagrams sent, datagrams lost)"""
    s = end['sum']
    each = s['bytes'] / s['packets'] if s['packets'] else 0
    return (s['packets'] - s['lost_packets']) * each, s['seconds'], s['packets'], s['lost_packets']


def totals(ends):
    """(bytes that arrived, seconds, loss of datagrams in percent or None)"""
    arrived = seconds = sent = lost = 0
    for end in ends:
        if 'sum_received' in end and 'packets' not in end['sum_received']:
            arrived += end['sum_received']['bytes']
            seconds = max(seconds, end['sum_received']['seconds'])
        else:
            more, took, packets, missing = udp_total(end)
            arrived, seconds, sent, lost = arrived + more, max(seconds, took), sent + packets, lost + missing
    return arrived, seconds, 100 * lost / sent if sent else None


def measure(stage, what, direction, seconds):
    """One row once through the stock client."""
    stage.need_client()
    probe = prober.Prober(stage)
    window = meter.Window(stage.pid)
    try:
        arrived, took, loss = totals(Run(stage, jobs_of(stage.bench, what, direction), seconds).ends())
        spent = window.end()
    finally:
        rtt = probe.end()
    lab.expect(arrived > 0, 'iperf3: nothing arrived')
    return load.sample(what, spent, arrived, took, loss, rtt)
