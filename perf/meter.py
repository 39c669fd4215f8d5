# SPDX-License-Identifier: Apache-2.0
"""CPU seconds and memory of processes and of the machine."""
import collections
import os
import time

TICK = os.sysconf('SC_CLK_TCK')
CPUCLOCK_SCHED = 2  # the kernel's name of the clock that counts what the scheduler gave


def process_seconds(pid):
    """Time of all threads of a process, ended ones and io_uring's tasks included, in nanoseconds' steps."""
    return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)


def machine_seconds():
    """Time that the machine's CPUs were not idle, stolen time included, plus a constant. The kernel measures the
    idle time; busy time it samples at ticks, and what is paced runs between them."""
    with open('/proc/stat', encoding='ascii') as f:
        fields = [int(x) for x in f.readline().split()[1:]]
    return time.monotonic() * os.sysconf('SC_NPROCESSORS_ONLN') - (fields[3] + fields[4]) / TICK


# Seconds of time, of a process's CPU (None without a process), of the machine's CPUs
Spent = collections.namedtuple('Spent', 'seconds process machine')


class Window:
    """What is spent from its making (or restart()) to end()."""

    def __init__(self, pid=None):
        self.pid = pid
        self.restart()

    def _now(self):
        return Spent(time.monotonic(), process_seconds(self.pid) if self.pid else None, machine_seconds())

    def restart(self):
        self.start = self._now()

    def end(self):
        now, start = self._now(), self.start
        process = now.process - start.process if self.pid else None
        return Spent(now.seconds - start.seconds, process, now.machine - start.machine)


def resident_bytes(pid):
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as f:
        for line in f:
            if line.startswith('Rss:'):
                return int(line.split()[1]) * 1024
    return 0


def thread_switches(pid):
    """Thread name and id -> voluntary context switches so far: how often it woke up."""
    out = {}
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/status', encoding='ascii', errors='replace') as f:
            fields = dict(x.split(':', 1) for x in f.read().splitlines() if ':' in x)
        out[f'{fields["Name"].strip()} ({task})'] = int(fields['voluntary_ctxt_switches'])
    return out
