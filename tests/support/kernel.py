# SPDX-License-Identifier: Apache-2.0
"""What the kernel counted in a namespace. Namespaces are new, so every count began at 0."""


def protocol_counts(ns):
    """{'Udp InErrors': n, ...} of both families; those of IPv6 as 'Udp6InErrors'."""
    out = {}
    lines = ns.read('snmp').splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        protocol = names.split(':')[0]
        for name, value in zip(names.split()[1:], values.split()[1:]):
            out[f'{protocol} {name}'] = int(value)
    for line in ns.read('snmp6').splitlines():
        name, value = line.split()
        out[name] = int(value)
    return out


def bad_checksums(ns):
    """Counts above 0 of packets whose checksum was wrong."""
    return {name: n for name, n in protocol_counts(ns).items() if 'CsumErrors' in name and n}


def device_counts(ns, dev):
    """(received, sent) as dicts of packets, errs, drop, ...; None if there is no such device."""
    head, *lines = ns.read('dev').splitlines()[1:]
    _, in_names, out_names = (part.split() for part in head.split('|'))
    for line in lines:
        name, _, numbers = line.partition(':')
        if name.strip() == dev:
            values = [int(x) for x in numbers.split()]
            return dict(zip(in_names, values)), dict(zip(out_names, values[len(in_names):]))
    return None


def refused_by_device(ns, dev):
    """What the kernel did not take from the owner of a tun device."""
    counts = device_counts(ns, dev)
    return {name: counts[0][name] for name in ('errs', 'drop', 'frame') if counts[0][name]} if counts else {}


def lost_in_queues(ns):
    """Packets that the kernel dropped here because a queue was full: sockets' and devices'."""
    counts = protocol_counts(ns)
    lost = sum(counts.get(x, 0) for x in ('Udp RcvbufErrors', 'Udp SndbufErrors', 'Udp6RcvbufErrors', 'Udp6SndbufErrors'))
    for line in ns.read('dev').splitlines()[2:]:
        name = line.split(':')[0].strip()
        if name != 'lo':
            received, sent = device_counts(ns, name)
            lost += received['drop'] + sent['drop']
    return lost
