# SPDX-License-Identifier: Apache-2.0
"""The cells of the report: every row with every contestant, several rounds, contestants taking turns
within each row so that what changes on the machine meanwhile touches all of them alike."""
import collections
import statistics
import time

import contestant
import inside
import iperf
import lab
import load
import stage
import swarm

STOCK_CLIENT, SWARM = 'stock client', 'swarm'
Row = collections.namedtuple('Row', 'load direction client is_merging')


def title(row):
    return f'{load.BY_KEY[row.load].title} {row.direction}'


def group(row):
    return f'{row.client}, merging {"on" if row.is_merging else "off"}'


def all_rows():
    """The groups in turn, so that the link is seldom changed."""
    return [Row(x.key, direction, client, merging) for merging in (False, True) for client in (STOCK_CLIENT, SWARM)
            for x in load.ALL for direction in (load.UP, load.DOWN)]


def is_headline(row):
    """The ends that users have today, and ends as good as the server."""
    return row.is_merging == (row.client == SWARM)


def is_possible(row, who):
    return who != contestant.BARE or row.client == STOCK_CLIENT


def is_default(row, who):
    """What fits into some twenty minutes: the whole of the two groups that matter most for the stock daemon and
    ours, and of the rest what shows a difference."""
    if not is_possible(row, who):
        return False
    if who in (contestant.STOCK, contestant.OURS):
        return is_headline(row) or row.load in ('tcp10', 'udp500')
    if who == contestant.BARE:
        return not row.is_merging and row.load in ('tcp1', 'tcp10', 'udp500')
    return is_headline(row) and (row.load in ('tcp10', 'udp500') or row.load == 'tcp1' and row.direction == load.DOWN)


def is_quick(row, who):
    return is_headline(row) and row.load in ('tcp10', 'udp500') and who in (contestant.STOCK, contestant.OURS)


def select(a):
    """{row: [contestants' keys]} of what the command line wants, empty rows left out."""
    wanted = is_possible if a.all else is_quick if a.quick else is_default
    if a.rows or a.columns:
        wanted = is_possible
    chosen = {}
    for row in all_rows():
        name = f'{row.load} {title(row)} {group(row)}'
        if a.rows and row.load not in a.rows or a.only and a.only not in name:
            continue
        columns = [c.key for c in contestant.ALL if (not a.columns or c.key in a.columns) and wanted(row, c.key)]
        if columns:
            chosen[row] = columns
    return chosen


class Matrix:
    """Runs cells and keeps what came of them. say(text): a line of progress."""

    def __init__(self, bench, chosen, seconds, rounds, say):
        self.bench, self.chosen, self.seconds, self.rounds, self.say = bench, chosen, seconds, rounds, say
        self.samples = {(row, who): [] for row, columns in chosen.items() for who in columns}
        self.failures = []
        self.done, self.started = 0, time.monotonic()

    def run_round(self, number):
        """All cells once, each contestant freshly started."""
        stages = {}
        try:
            for row, columns in self.chosen.items():
                for who in columns:
                    self._cell(number, row, who, stages)
        finally:
            for where in stages.values():
                where.close()

    def _cell(self, number, row, who, stages):
        self.done += 1
        head = f'{self._clock()} round {number}  {title(row):16} {group(row):25} {contestant.BY_KEY[who].title:18}'
        try:
            if who not in stages:
                stages[who] = stage.Stage(self.bench, contestant.BY_KEY[who])
            stages[who].set_merging(row.is_merging)
            sample = self._measure(row, stages[who])
        except lab.Failure as failure:
            self.failures.append(f'{title(row)}, {group(row)}, {who}: {failure}')
            self.say(f'{head} FAILED: {failure}')
            if who in stages:
                stages.pop(who).close()  # the next cell begins with a new one
            return
        self.samples[row, who].append(sample)
        self.say(f'{head} {brief(row, sample)}')

    def _measure(self, row, where):
        run = iperf if row.client == STOCK_CLIENT else swarm
        counts = inside.Inside(where)
        sample = run.measure(where, load.BY_KEY[row.load], row.direction, self.seconds)
        sample.update(counts.end())
        where.expect_alive()
        return sample

    def _clock(self):
        total, spent = len(self.samples) * self.rounds, time.monotonic() - self.started
        left = spent / max(1, self.done - 1) * (total - self.done + 1) if self.done > 1 else 0
        return f'[{self.done:3}/{total} -{int(left) // 60}:{int(left) % 60:02}]'

    def rows(self):
        """For the JSON: a list of rows with samples and medians of each column."""
        out = []
        for row, columns in self.chosen.items():
            cells = {who: {'median': median(self.samples[row, who]), 'samples': self.samples[row, who]} for who in columns}
            out.append({'load': row.load, 'direction': row.direction, 'client': row.client, 'merging': row.is_merging,
                        'title': title(row), 'group': group(row), 'unit': load.unit(load.BY_KEY[row.load]), 'columns': cells})
        return out


def median(samples):
    """Of each number; drops are added up."""
    out = {}
    for key in {k for s in samples for k in s}:
        values = [s[key] for s in samples if s.get(key) is not None]
        if key == 'drops':
            out[key] = dict(sum((collections.Counter(v) for v in values), collections.Counter()))
        else:
            out[key] = statistics.median(values) if values else None
    return out


def brief(row, sample):
    unit = load.unit(load.BY_KEY[row.load])
    words = [f'{sample["mbit"]:7.0f} Mbit/s']
    if sample['server'] is not None:
        words.append(f'server {sample["server"]:6.2f} {unit}')
    words.append(f'machine {sample["machine"]:6.2f} {unit}')
    if sample['loss']:
        words.append(f'loss {sample["loss"]:.1f} %')
    if sample['rtt_p50'] is not None:
        words.append(f'rtt {sample["rtt_p50"] / 1e3:.2f}/{sample["rtt_p99"] / 1e3:.2f} ms')
    return '  '.join(words)
