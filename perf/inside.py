# SPDX-License-Identifier: Apache-2.0
"""What our server counted while it was loaded, from two scrapes of its metrics."""


def _sum(samples, name, **labels):
    return samples.sum(f'shardvpn_{name}_total', **labels)


class Inside:
    """Made before the load; end() after it."""

    def __init__(self, stage):
        self.stage = stage
        self.before = stage.scrape()

    def end(self):
        """{'open_batch', 'seal_batch': packets a call of the cipher; 'calls': system calls a packet;
        'handed': share of packets that changed the worker; 'drops': {'direction reason': number}}; {} without metrics."""
        after = self.stage.scrape()
        if not self.before or not after:
            return {}

        def more(name, **labels):
            return _sum(after, name, **labels) - _sum(self.before, name, **labels)

        opened, sealed = more('crypto_packets', op='decrypt'), more('crypto_packets', op='encrypt')
        packets = opened + sealed
        if packets <= 0:
            return {}
        return {'open_batch': opened / max(1, more('crypto_batches', op='decrypt')),
                'seal_batch': sealed / max(1, more('crypto_batches', op='encrypt')),
                'calls': more('worker_system_calls') / packets,
                'handed': more('handoff_packets', direction='in') / packets,
                'packets': packets, 'drops': self._drops(after)}

    def _drops(self, after):
        name, counts = 'shardvpn_dropped_packets_total', {}
        for sign, samples in ((1, after), (-1, self.before)):
            for labels, value in samples.all(name):
                key = f'{labels["direction"]} {labels["reason"]}'
                counts[key] = counts.get(key, 0) + sign * value
        return {key: int(n) for key, n in counts.items() if n}
