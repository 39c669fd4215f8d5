#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What the report makes of samples, without measuring any."""
import argparse
import json
import os
import tempfile
import unittest

import paths  # noqa: F401
import contestant
import figures
import inside
import iperf
import load
import matrix
import meter
import readme
import report
import swarm
import vpn

SPENT = meter.Spent(2.0, 1.0, 3.0)


def row(key, direction, client, merging, **server):
    """A row as the JSON has it; server: CPU of each column."""
    cells = {who: {'median': {'mbit': 100.0, 'server': value, 'machine': 2 * value, 'loss': None, 'rtt_p50': None},
                   'samples': []} for who, value in server.items()}
    return {'load': key, 'direction': direction, 'client': client, 'merging': merging, 'title': f'{key} {direction}',
            'group': client, 'unit': 's/GB', 'columns': cells}


def result(rows):
    return {'date': 'today', 'machine': {'CPU': 'x', 'kernel': 'x', 'openvpn': 'x [y]', 'OpenSSL': 'x', 'ipsec-mb': 'x'},
            'settings': {'cipher': 'x', 'workers': 2, 'rounds': 1, 'seconds': 1}, 'rows': rows, 'extras': {},
            'figures': figures.of_rows(rows), 'failures': []}


class Samples(unittest.TestCase):
    def test_bytes_are_counted_in_gigabytes_and_datagrams_in_millions(self):
        bulk = load.sample(load.BY_KEY['tcp1'], SPENT, 2e9, 2.0, None, None)
        small = load.sample(load.BY_KEY['udp500'], SPENT, 500 * 1e6, 2.0, 0.0, {'p50': 1, 'p99': 2})
        self.assertEqual((bulk['server'], bulk['machine'], bulk['mbit']), (0.5, 1.5, 8000.0))
        self.assertEqual((small['server'], small['rate'], small['rtt_p99']), (1.0, 500000.0, 2))

    def test_without_a_server_its_cpu_is_unknown_not_zero(self):
        bare = load.sample(load.BY_KEY['tcp1'], meter.Spent(2.0, None, 3.0), 1e9, 2.0, None, None)
        self.assertIsNone(bare['server'])

    def test_a_merged_packet_at_the_sink_has_one_header(self):
        before, after = {'udp': (10, 1000), 'tcp': (0, 0)}, {'udp': (12, 1000 + 2 * 28 + 3000), 'tcp': (1, 40 + 13500)}
        self.assertEqual(swarm.delivered(before, after, 'udp'), 3000)
        self.assertEqual(swarm.delivered(before, after, 'tcp'), 13500)

    def test_lost_datagrams_do_not_count_as_arrived(self):
        udp = {'sum': {'bytes': 1000, 'packets': 10, 'lost_packets': 4, 'seconds': 1.0}, 'sum_received': {'packets': 6}}
        self.assertEqual(iperf.totals([udp]), (600, 1.0, 40.0))

    def test_medians_leave_out_what_was_not_measured(self):
        got = matrix.median([{'loss': None, 'mbit': 1, 'drops': {'ingress mtu': 1}}, {'loss': 3, 'mbit': 5},
                             {'mbit': 9, 'drops': {'ingress mtu': 2}}])
        self.assertEqual(got, {'loss': 3, 'mbit': 5, 'drops': {'ingress mtu': 3}})


class Selection(unittest.TestCase):
    def select(self, **words):
        usual = {'all': False, 'quick': False, 'rows': [], 'columns': [], 'only': ''}
        return matrix.select(argparse.Namespace(**{**usual, **words}))

    def test_all_has_every_row_and_column_but_swarm_without_a_tunnel(self):
        chosen = self.select(all=True)
        self.assertEqual(len(chosen), len(load.ALL) * 2 * 2 * 2)
        self.assertFalse([r for r, columns in chosen.items() if r.client == matrix.SWARM and contestant.BARE in columns])

    def test_filters_go_together(self):
        chosen = self.select(rows=['tcp10'], columns=['ours'], only='down swarm, merging on')
        self.assertEqual([(r.load, r.direction, r.client, r.is_merging) for r in chosen],
                         [('tcp10', 'down', 'swarm', True)])
        chosen = self.select(rows=['tcp10'], columns=['ours'], only='down')
        self.assertEqual({r.direction for r in chosen}, {load.DOWN})
        self.assertEqual({tuple(c) for c in chosen.values()}, {('ours',)})


class Figures(unittest.TestCase):
    def test_a_ratio_is_of_the_row_that_the_figure_names(self):
        rows = [row('tcp10', 'down', 'stock client', False, stock=12.0, ours=1.0), row('tcp10', 'down', 'swarm', True, stock=1.0, ours=1.0)]
        found = {f.text: f for f in figures.of_rows(rows)}
        self.assertTrue(found['TCP -P 10 to the client, stock client, ipsec-mb'].is_good)
        self.assertIsNone(found['TCP -P 10 to the client, stock client, OpenSSL'].is_good)
        self.assertFalse(found['server CPU of TCP -P 10 to the client, swarm, merging on (aim 0.4)'].is_good)

    def test_the_limit_itself_is_reached(self):
        self.assertTrue(figures.at_least('x', 5.0, 5).is_good)
        self.assertTrue(figures.at_most('x', 5.0, 5).is_good)
        self.assertFalse(figures.at_most('x', 5.01, 5).is_good)


class Inside(unittest.TestCase):
    def test_counts_are_differences_of_two_scrapes(self):
        class Server:
            scrapes = [(0, 0, 0, 1), (300, 10, 30, 3)]

            def scrape(self):
                packets, batches, calls, drops = self.scrapes.pop(0)
                return vpn.Metrics(f'shardvpn_crypto_packets_total{{op="decrypt"}} {packets}\n'
                                   f'shardvpn_crypto_batches_total{{op="decrypt"}} {batches}\n'
                                   f'shardvpn_worker_system_calls_total{{worker="1"}} {calls}\n'
                                   f'shardvpn_dropped_packets_total{{direction="ingress",reason="mtu"}} {drops}\n')
        got = inside.Inside(Server()).end()
        self.assertEqual((got['open_batch'], got['calls'], got['drops']), (30.0, 0.1, {'ingress mtu': 2}))


class Files(unittest.TestCase):
    def test_a_report_is_written_whole_and_the_readme_keeps_its_text(self):
        rows = [row('tcp10', 'down', 'stock client', False, stock=12.0, ours=1.0)]
        with tempfile.TemporaryDirectory() as folder:
            report.write(result(rows), folder)
            with open(os.path.join(folder, 'latest.json'), encoding='utf-8') as f:
                self.assertEqual(json.load(f)['rows'], rows)
            path = os.path.join(folder, 'README.md')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(f'before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n')
            readme.update(folder, path)
            readme.update(folder, path)
            with open(path, encoding='utf-8') as f:
                text = f.read()
        self.assertTrue(text.startswith(f'before\n{readme.BEGIN}\n') and text.endswith(f'{readme.END}\nafter\n'))
        self.assertEqual(text.count('| tcp10 down | stock client | 100 | 100 | 12.00 s/GB | 1.00 s/GB | 12.0x |'), 1)
        self.assertNotIn('old', text)

    def test_a_readme_without_the_markers_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            report.write(result([]), folder)
            path = os.path.join(folder, 'README.md')
            with open(path, 'w', encoding='utf-8') as f:
                f.write('nothing')
            self.assertRaises(ValueError, readme.update, folder, path)


if __name__ == '__main__':
    unittest.main()
