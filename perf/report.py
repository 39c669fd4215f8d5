# SPDX-License-Identifier: Apache-2.0
"""The results as JSON and Markdown."""
import json
import os

import chart
import contestant
import figures

LEGEND = '''GB = 10^9 bytes of payload. Server: CPU of the server's process, io_uring's tasks included. Machine: all that
the machine's CPUs did, both ends of the load and the kernel's threads included. RTT: echoes through the tunnel, 200 a
second, while the load runs. `up` is to the server, `down` from it. Stock client: one `openvpn` and iperf3; UDP is
offered at the same pace to all. swarm: emulated clients that saturate the server and stay just below what overflows its
queues, each TCP stream a client (UDP: ten). Merging off: the link delivers datagrams as they were sent, and swarm sends
single ones; on: it merges as a card with receive offload, and swarm sends super-packets.'''


def _columns(rows):
    return [c for c in contestant.ALL if any(c.key in r['columns'] for r in rows)]


def _median(row, who):
    return row['columns'].get(who, {}).get('median') or {}


def _table(rows, columns, head, text):
    """text(row, its median): what stands in a cell."""
    lines = [f'| {head} | ' + ' | '.join(c.title for c in columns) + ' |', '|---' * (len(columns) + 1) + '|']
    for group in dict.fromkeys(r['group'] for r in rows):
        lines.append(f'| **{group}** |' + ' |' * len(columns))
        for r in (r for r in rows if r['group'] == group):
            cells = (text(r, _median(r, c.key)) if _median(r, c.key) else '' for c in columns)
            lines.append(f'| {r["title"]} | ' + ' | '.join(cells) + ' |')
    return lines


def _throughput(row, m):
    rate = f', {m["rate"] / 1e3:.0f}k/s' if m.get('rate') else ''
    loss = f', {m["loss"]:.1f} % lost' if m.get('loss') and m['loss'] >= 0.05 else ''
    return f'{m["mbit"]:.0f}{rate}{loss}'


def _server(row, m):
    if m.get('server') is None:
        return ''
    stock = _median(row, contestant.STOCK).get('server')
    times = f' ({stock / m["server"]:.1f}x)' if stock and m['server'] and stock != m['server'] else ''
    return f'{m["server"]:.2f} {row["unit"]}{times}'


def _machine(row, m):
    return f'{m["machine"]:.2f} {row["unit"]}'


def _rtt(row, m):
    return f'{m["rtt_p50"] / 1e3:.2f} / {m["rtt_p99"] / 1e3:.2f}' if m.get('rtt_p50') is not None else ''


def _inside(row, m):
    if m.get('calls') is None:
        return ''
    return f'{m["open_batch"]:.1f} / {m["seal_batch"]:.1f} / {m["calls"]:.3f} / {100 * m["handed"]:.1f} %'


def tables(result):
    rows = result['rows']
    ours = [c for c in _columns(rows) if c.kind == 'ours']
    out = []
    for title, columns, head, text in (
            ('CPU of the server (times less than `openvpn`)', [c for c in _columns(rows) if c.kind != 'bare'], 'row', _server),
            ('Throughput, Mbit/s of payload', _columns(rows), 'row', _throughput),
            ('CPU of the whole machine', _columns(rows), 'row', _machine),
            ('RTT under the load, p50 / p99, ms', _columns(rows), 'row', _rtt),
            ('Inside: packets a batch opened / sealed / system calls a packet / packets handed to another worker',
             ours, 'row', _inside)):
        if columns:
            out += ['', f'## {title}', '', *_table(rows, columns, head, text)]
    return out


def head(result):
    m, s = result['machine'], result['settings']
    return [f'{k}: {v}  ' for k, v in m.items()] + [
        f'{s["cipher"]}, {s["workers"]} workers, medians of {s["rounds"]} rounds of {s["seconds"]} s, {result["date"]}']


def markdown(result):
    lines = ['# shardvpn beside stock openvpn', '', *head(result), '', '## Figures', '',
             *figures.table([figures.Figure(*f) for f in result['figures']])]
    if os.path.exists(result['chart']):
        lines += ['', f'![CPU of the server]({os.path.basename(result["chart"])})']
    lines += tables(result) if result['rows'] else []
    for extra in result['extras'].values():
        lines += ['', f'## {extra["title"]}', '', *extra['lines']]
    if result['failures']:
        lines += ['', '## What failed', '', *(f'- {x}' for x in result['failures'])]
    return '\n'.join([*lines, '', LEGEND, ''])


def write(result, folder):
    """latest.json, latest.md, latest.svg; a remark if there is no chart."""
    os.makedirs(folder, exist_ok=True)
    result['chart'] = os.path.join(folder, 'latest.svg')
    remark = chart.draw(result['rows'], result['chart'])
    with open(os.path.join(folder, 'latest.md'), 'w', encoding='utf-8') as f:
        f.write(markdown(result))
    plain = {k: v for k, v in result.items() if k != 'chart'}
    with open(os.path.join(folder, 'latest.json'), 'w', encoding='utf-8') as f:
        json.dump(plain, f, indent=1)
        f.write('\n')
    return remark
