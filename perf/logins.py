#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Logins a second and their CPU, ours and stock."""
import sys

import paths  # noqa: F401
import contestant
import extra
import figures
import lab
import stage
import swarm

TITLE = 'Logins'
LOGINS = 400
WHO = (contestant.STOCK, contestant.OURS)


def logins(where):
    crowd = swarm.Swarm(where, LOGINS, ['--connect-only'])
    got = crowd.result(swarm.CONNECT_S)['login']
    lab.expect(got['failed'] == 0, f'{got["failed"]} logins failed')
    return got


def measure(b, say):
    got = {}
    for who in WHO:
        with stage.Stage(b, contestant.BY_KEY[who]) as where:
            got[who] = m = logins(where)
            say(f'  {who:6} {m["per_second"]:.0f} logins a second, {m["server_cpu_ms_each"]:.2f} ms each')
    return got


def lines(got):
    out = ['| server | logins a second | server CPU each | machine CPU each | p50, ms | p99, ms |', '|---|---|---|---|---|---|']
    for who in WHO:
        m = got[who]
        out.append(f'| {contestant.BY_KEY[who].title} | {m["per_second"]:.0f} | {m["server_cpu_ms_each"]:.2f} ms | '
                   f'{m["machine_cpu_ms_each"]:.2f} ms | {m["latency_ms"]["p50"]:.0f} | {m["latency_ms"]["p99"]:.0f} |')
    return out


def figures_of(got):
    stock, ours = got[contestant.STOCK], got[contestant.OURS]
    return [figures.at_least('CPU of a login', stock['server_cpu_ms_each'] / ours['server_cpu_ms_each'], 2, 'x')]


if __name__ == '__main__':
    sys.exit(extra.main(sys.modules['__main__']))
