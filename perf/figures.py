# SPDX-License-Identifier: Apache-2.0
"""What is to be reached, beside what was measured."""
import collections

import contestant
import load

# wanted, got: text; is_good: None if it was not measured
Figure = collections.namedtuple('Figure', 'text wanted got is_good')


def at_least(text, value, limit, unit=''):
    return _figure(text, value, f'at least {limit:g}{unit}', unit, lambda: value >= limit)


def at_most(text, value, limit, unit=''):
    return _figure(text, value, f'at most {limit:g}{unit}', unit, lambda: value <= limit)


def _figure(text, value, wanted, unit, test):
    if value is None:
        return Figure(text, wanted, 'not measured', None)
    return Figure(text, wanted, f'{value:.3g}{unit}' if abs(value) < 1000 else f'{value:.0f}{unit}', test())


def _cell(rows, key, direction, client, merging, who, value):
    for r in rows:
        if (r['load'], r['direction'], r['client'], r['merging']) == (key, direction, client, merging):
            return r['columns'].get(who, {}).get('median', {}).get(value)
    return None


def ratio(rows, key, direction, client, merging, who=contestant.OURS):
    """How many times less CPU our server takes than the stock one."""
    stock = _cell(rows, key, direction, client, merging, contestant.STOCK, 'server')
    ours = _cell(rows, key, direction, client, merging, who, 'server')
    return stock / ours if stock and ours else None


def _bulk(rows):
    stock, swarm = ('stock client', False), ('swarm', True)
    for key in ('tcp1', 'tcp10'):
        name = load.BY_KEY[key].title
        yield at_least(f'{name} to the client, stock client, ipsec-mb', ratio(rows, key, load.DOWN, *stock), 12, 'x')
        yield at_least(f'{name} to the client, stock client, OpenSSL',
                       ratio(rows, key, load.DOWN, *stock, contestant.OPENSSL), 8, 'x')
        yield at_least(f'{name} to the server, swarm saturating', ratio(rows, key, load.UP, *swarm), 12, 'x')
        batch = _cell(rows, key, load.UP, *stock, contestant.OURS, 'open_batch')
        yield at_least(f'{name} to the server, stock client ({batch or 0:.1f} packets a batch)',
                       ratio(rows, key, load.UP, *stock), 5, 'x')
    for direction, text in ((load.UP, 'to the server'), (load.DOWN, 'to the client')):
        yield at_most(f'server CPU of TCP -P 10 {text}, swarm, merging on (aim 0.4)',
                      _cell(rows, 'tcp10', direction, *swarm, contestant.OURS, 'server'), 0.9, ' s/GB')


def _datagrams(rows):
    for key, limit in (('udp500', 6), ('udp64', 5)):
        for direction in (load.UP, load.DOWN):
            for client, merging in (('stock client', False), ('swarm', True)):
                yield at_least(f'{load.BY_KEY[key].title} {direction}, {client}, merging {"on" if merging else "off"}',
                               ratio(rows, key, direction, client, merging), limit, 'x')


def of_rows(rows):
    """The matrix's: ratios of the server's CPU, stock to ours."""
    return [*_bulk(rows), *_datagrams(rows)]


def table(figures):
    lines = ['| figure | wanted | measured | |', '|---|---|---|---|']
    words = {True: 'ok', False: '**missed**', None: ''}
    return lines + [f'| {f.text} | {f.wanted} | {f.got} | {words[f.is_good]} |' for f in figures]
