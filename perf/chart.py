# SPDX-License-Identifier: Apache-2.0
"""The report as bars, drawn by gnuplot: the server's CPU of both headline groups."""
import shutil
import subprocess

import contestant
import load

COLOURS = {contestant.STOCK: '#8a8a8a', contestant.OPENSSL: '#e0a030', contestant.OURS: '#1f6fb2', contestant.EPOLL: '#5fb0a0'}
PANELS = (('s/GB', 'CPU seconds of the server per GB', ('tcp1', 'tcp10', 'mixed')),
          ('us', 'CPU microseconds of the server per datagram', ('udp64', 'udp500', 'udp1400')))

HEAD = '''set terminal svg size 1160,900 dynamic noenhanced font 'sans-serif,12' background '#ffffff'
set output '{path}'
set multiplot layout 2,1
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 border -1
set yrange [0:*]
set grid ytics
set bmargin 5
set rmargin 2
set datafile missing '?'
set key outside top center horizontal
set xtics scale 0 font ',10'
set boxwidth 0.95
'''


def is_headline(row):
    return row['merging'] == (row['client'] == 'swarm')


def _value(row, who):
    return row['columns'].get(who, {}).get('median', {}).get('server')


def _panel(name, title, rows, keys):
    chosen = [r for r in rows if r['load'] in keys and is_headline(r) and any(_value(r, c) for c in COLOURS)]
    columns = [c for c in contestant.ALL if c.key in COLOURS and any(c.key in r['columns'] for r in chosen)]
    if not chosen or not columns:
        return ''
    lines = []
    for r in chosen:
        values = (_value(r, c.key) for c in columns)
        arrow = 'to server' if r['direction'] == load.UP else 'from server'
        label = f'{load.BY_KEY[r["load"]].title}\\n{arrow}\\n{r["client"]}'
        lines.append(f'"{label}" ' + ' '.join(f'{v:.4f}' if v else '?' for v in values))
    plots = ', '.join(f'{name} using {i + 2}:xtic(1) title "{c.title}" linecolor rgb "{COLOURS[c.key]}"'
                      for i, c in enumerate(columns))
    return f'{name} << EOD\n' + '\n'.join(lines) + f'\nEOD\nset ylabel "{title}"\nplot {plots}\n'


def draw(rows, path):
    """Write the SVG. Returns why not, or None."""
    if not shutil.which('gnuplot'):
        return 'no chart: gnuplot is missing (apt install gnuplot-nox)'
    panels = [_panel(f'$panel{i}', title, rows, keys) for i, (_, title, keys) in enumerate(PANELS)]
    if not any(panels):
        return 'no chart: none of its rows was measured'
    text = HEAD.format(path=path) + ''.join(panels) + 'unset multiplot\n'
    done = subprocess.run(['gnuplot'], input=text, capture_output=True, text=True, check=False)
    return f'no chart: gnuplot: {done.stderr[-300:]}' if done.returncode else None
