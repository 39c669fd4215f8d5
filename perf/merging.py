# SPDX-License-Identifier: Apache-2.0
"""Whether a veth merges the datagrams that arrive one by one, as a network card with receive offload
does. A veth does it only with generic receive offload in a thread of its own."""

SET = 'mount -t sysfs none /sys && echo {value} > /sys/class/net/{dev}/threaded'


def set_merging(ns, dev, is_on):
    word = 'on' if is_on else 'off'
    if is_on:
        ns.run(['ethtool', '-K', dev, 'gro', 'on', 'rx-udp-gro-forwarding', 'on'])
    # A sysfs shows the devices of the namespace in which it was mounted.
    ns.run(['unshare', '--mount', 'sh', '-c', SET.format(dev=dev, value=int(is_on))])
    if not is_on:
        ns.run(['ethtool', '-K', dev, 'rx-udp-gro-forwarding', word, 'gro', word])
