#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Stock openvpn and shardvpn side by side: the whole report.

Rows: TCP with one stream and ten, UDP of 64, 500 and 1400 bytes, both mixed; to the server (up) and from it (down);
through a stock client and from emulated ones (swarm); without and with merging on the link. Columns: stock openvpn,
ours with OpenSSL, with ipsec-mb, on epoll, and no tunnel. Contestants take turns within a row; medians over the
rounds. Then the measurements of their own: perf/{paced,fairness,peers,logins,storm,rekey,calls}.py, which can also be run
alone. Writes latest.md, latest.json and latest.svg.
"""
import sys
import time

import paths  # noqa: F401
import bench
import calls
import contestant
import fairness
import figures
import lab
import load
import logins
import machine
import matrix
import paced
import peers
import readme
import rekey
import report
import storm

EXTRAS = {m.__name__: m for m in (paced, fairness, peers, logins, storm, rekey, calls)}


def words(text):
    return [x for x in text.split(',') if x]


def options(p):
    p.add_argument('--rounds', type=int, help='(5; quick: 1)')
    p.add_argument('--seconds', type=int, default=1, help='of each cell (1)')
    p.add_argument('--quick', action='store_true', help='a few cells once, no measurements of their own')
    p.add_argument('--all', action='store_true', help='every row with every column: some 50 minutes')
    p.add_argument('--rows', type=words, default=[], help=f'of {",".join(x.key for x in load.ALL)}')
    p.add_argument('--columns', type=words, default=[], help=f'of {",".join(c.key for c in contestant.ALL)}')
    p.add_argument('--only', default='', help='rows whose name holds this, e.g. "down swarm, merging on"')
    p.add_argument('--extras', type=words, help=f'of {",".join(EXTRAS)}; none: no such (all, unless rows are chosen)')
    p.add_argument('--only-extras', action='store_true', help='no rows')
    p.add_argument('--out', default=paths.RESULTS)
    p.add_argument('--readme', action='store_true', help='update the README from the results')
    p.add_argument('--only-readme', action='store_true', help='... of the last run, and measure nothing')
    p.add_argument('--need', type=float, default=0, help='exit code 1 if a ratio of server CPU is below this')


def check(a, p):
    for given, known, name in ((a.rows, load.BY_KEY, '--rows'), (a.columns, contestant.BY_KEY, '--columns'),
                               ([x for x in a.extras or [] if x != 'none'], EXTRAS, '--extras')):
        strange = [x for x in given if x not in known]
        if strange:
            p(f'{name}: {", ".join(strange)} is none of {", ".join(known)}')
    if a.extras is None:
        a.extras = [] if a.quick or a.rows or a.columns or a.only else list(EXTRAS)
    a.rounds = a.rounds or (1 if a.quick else 5)


def say(text):
    print(text, flush=True)


def run_extras(a, b, result):
    for name in a.extras:
        if name == 'none':
            continue
        say(f'== {EXTRAS[name].TITLE}')
        try:
            got = EXTRAS[name].measure(b, say)
        except lab.Failure as failure:
            result['failures'].append(f'{name}: {failure}')
            say(f'FAILED: {failure}')
            continue
        result['extras'][name] = {'title': EXTRAS[name].TITLE, 'lines': EXTRAS[name].lines(got), 'data': got}
        result['figures'] += EXTRAS[name].figures_of(got)


def run(a, b):
    result = {'date': time.strftime('%Y-%m-%d'), 'machine': machine.describe(b), 'failures': [], 'rows': [], 'extras': {},
              'settings': {'cipher': b.cipher, 'workers': b.workers, 'rounds': a.rounds, 'seconds': a.seconds,
                           'udp_rate': b.udp_rate}, 'figures': []}
    cells = matrix.Matrix(b, {} if a.only_extras else matrix.select(a), a.seconds, a.rounds, say)
    for n in range(a.rounds if cells.chosen else 0):
        cells.run_round(n + 1)
        result['settings']['rounds'] = n + 1
        result['rows'], result['failures'] = cells.rows(), cells.failures
        result['figures'] = figures.of_rows(result['rows'])
        report.write(result, a.out)  # so that what was measured outlives an interruption
    run_extras(a, b, result)
    return result


def worst_ratio(rows):
    ratios = [stock / ours for r in rows for stock, ours in
              [[r['columns'].get(k, {}).get('median', {}).get('server') for k in (contestant.STOCK, contestant.OURS)]]
              if stock and ours]
    return min(ratios, default=float('inf'))


def main():
    a = bench.parse(__doc__, options)
    check(a, sys.exit)
    if a.only_readme:
        readme.update(a.out)
        return 0
    with bench.Bench(a) as b:
        if b.missing():
            sys.exit(f'compare: missing: {", ".join(b.missing())} (meson setup build && ninja -C build)')
        result = run(a, b)
    remark = report.write(result, a.out)
    print('\n' + report.markdown(result))
    if remark:
        print(remark, file=sys.stderr)
    if a.readme:
        readme.update(a.out)
    return 1 if result['failures'] or worst_ratio(result['rows']) < a.need else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except lab.Failure as failure:
        sys.exit(f'compare: {failure}')
    except KeyboardInterrupt:
        sys.exit(130)
