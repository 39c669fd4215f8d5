# SPDX-License-Identifier: Apache-2.0
"""Round trips in the client's namespace while something else loads the tunnel."""
import json
import signal

import lab

INTERVAL_MS = 5


class Prober:
    """ICMP echo at a steady pace from its making until end()."""

    def __init__(self, stage, interval_ms=INTERVAL_MS):
        argv = [stage.bench.prober, '--to', stage.target, '--dev', stage.device, '--interval-ms', str(interval_ms)]
        self.process = stage.world.start(stage.client_ns, 'prober', argv)

    def end(self):
        """{'p50', 'p99', 'loss', 'sent'}: microseconds and percent."""
        self.process.signal(signal.SIGTERM)
        lab.expect(self.process.wait_exit(5) == 0, f'prober: {self.process.text()[-200:]}')
        got = json.loads(self.process.text())
        return {'p50': got['rtt_us']['p50'], 'p99': got['rtt_us']['p99'], 'loss': got['loss_percent'], 'sent': got['sent']}
