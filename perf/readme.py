# SPDX-License-Identifier: Apache-2.0
"""The README's block about the last run, between two marker lines."""
import json
import os

import contestant
import figures
from paths import RESULTS, ROOT

BEGIN, END = '<!-- compare: begin -->', '<!-- compare: end -->'


def _line(row):
    stock, ours = (row['columns'].get(k, {}).get('median') or {} for k in (contestant.STOCK, contestant.OURS))
    if not stock.get('server') or not ours.get('server'):
        return None
    return (f'| {row["title"]} | {row["client"]} | {stock["mbit"]:.0f} | {ours["mbit"]:.0f} | {stock["server"]:.2f} {row["unit"]} | '
            f'{ours["server"]:.2f} {row["unit"]} | {stock["server"] / ours["server"]:.1f}x |')


def block(result):
    """The lines between the markers."""
    m, s = result['machine'], result['settings']
    rows = [r for r in result['rows'] if r['merging'] == (r['client'] == 'swarm')]
    lines = ['![CPU of the server, stock openvpn and shardvpn](perf/results/latest.svg)', '',
             '| row | client | Mbit/s `openvpn` | Mbit/s `shardvpn` | server CPU `openvpn` | server CPU `shardvpn` | ratio |',
             '|---|---|---|---|---|---|---|', *filter(None, map(_line, rows)), '',
             f'{m["CPU"]}; {m["kernel"]}; {m["openvpn"].split(" [")[0]}; {m["OpenSSL"].split(" (")[0]}; ipsec-mb {m["ipsec-mb"]}; '
             f'{s["cipher"]}; medians of {s["rounds"]} rounds of {s["seconds"]} s on {result["date"]}. All ends of the load '
             'run on the same cores.']
    found = [figures.Figure(*f) for f in result['figures'] if f[3] is not None]
    if found:
        good = sum(f.is_good for f in found)
        lines += ['', f'{good} of {len(found)} figures aimed at are reached: [perf/results/latest.md](perf/results/latest.md) '
                  'has them, and all rows, machine CPU, loss, round trips and batch sizes.']
    return lines


def update(folder=RESULTS, path=os.path.join(ROOT, 'README.md')):
    """Rewrite the block from latest.json."""
    with open(os.path.join(folder, 'latest.json'), encoding='utf-8') as f:
        result = json.load(f)
    with open(path, encoding='utf-8') as f:
        text = f.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f'{path} has no lines {BEGIN} and {END}')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join([before + BEGIN, *block(result), END + after]))
