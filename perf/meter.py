# SPDX-License-Identifier: Apache-2.0
"""CPU seconds and memory of processes and of the machine."""
import os

TICK = os.sysconf('SC_CLK_TCK')


def process_seconds(pid):
    """User and system time of all threads of a process, ended ones and io_uring's tasks included."""
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
        fields = f.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def machine_seconds():
    """Time that the machine's CPUs were not idle, soft interrupts and stolen time included."""
    with open('/proc/stat', encoding='ascii') as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK


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
