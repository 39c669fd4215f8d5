#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interoperability: stock clients in network namespaces against a server binary. Needs root.

usage: run.py --server BINARY [--engine uring|epoll|both] [--full] [--jobs N] [--keep] [--list] [CASE...]

Every case runs in a process of its own that made its namespaces itself; they end with it. The quick
run takes the cases marked quick, on io_uring, and those marked `both` on epoll as well.
A CASE may hold shell wildcards.
"""
import argparse
import collections
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'support')]
sys.dont_write_bytecode = True

import lab  # noqa: E402
import pki  # noqa: E402
import vpn  # noqa: E402
from case import CASES, Test  # noqa: E402

import cases_data  # noqa: E402,F401
import cases_path  # noqa: E402,F401
import cases_mtu  # noqa: E402,F401
import cases_load  # noqa: E402,F401
import cases_offload  # noqa: E402,F401
import cases_attack  # noqa: E402,F401
import cases_burst  # noqa: E402,F401
import cases_keys  # noqa: E402,F401
import cases_clients  # noqa: E402,F401
import cases_refusals  # noqa: E402,F401
import cases_hostile  # noqa: E402,F401
import cases_start  # noqa: E402,F401
import cases_steering  # noqa: E402,F401
import cases_stock  # noqa: E402,F401
import cases_quickstart  # noqa: E402,F401
import cases_swarm  # noqa: E402,F401

EXIT_SKIP = 77


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--server', default='/usr/sbin/openvpn', help='the server under test')
    p.add_argument('--stock', default='/usr/sbin/openvpn', help='the stock daemon: clients, and the model')
    p.add_argument('--engine', choices=['uring', 'epoll', 'auto', 'both', 'mixed'], default='mixed')
    p.add_argument('--aead', default='auto')
    p.add_argument('--workers', type=int, default=2)
    p.add_argument('--full', action='store_true')
    p.add_argument('--jobs', type=int, default=1)
    p.add_argument('--prefix', default='', help='words before the server, e.g. valgrind --error-exitcode=99')
    p.add_argument('--results', help='append PASS, FAIL, SKIP lines to this file')
    p.add_argument('--label', default='interop', help='first part of the names in the results')
    p.add_argument('--scale', type=float, default=1, help='factor of all deadlines of a case')
    p.add_argument('--keep', action='store_true', help='keep the files of a case')
    p.add_argument('--list', action='store_true')
    p.add_argument('--one', help=argparse.SUPPRESS)
    p.add_argument('--top', help=argparse.SUPPRESS)
    p.add_argument('cases', nargs='*')
    a = p.parse_args()
    a.server, a.stock = os.path.abspath(a.server), os.path.abspath(a.stock)
    return a


def run_one(a):
    """In the process of its own: one case, one engine."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('the deadline of the case is over'))
    lab.die_with_parent(signal.SIGTERM)
    setup = vpn.Setup(a.server, a.engine, a.aead, a.workers, not a.full, a.prefix.split(), a.stock)
    world = lab.Lab(a.one, a.top)
    code, keep = 1, a.keep
    try:
        if CASES[a.one].ours:
            setup.need_ours()
        if a.engine == 'uring' and not lab.uring_is_permitted():
            raise lab.Skip('io_uring is not permitted here')
        test = Test(world, pki.Pki(os.path.join(a.top, 'pki')), setup)
        CASES[a.one].run(test)
        test.finish()
        code = 0
    except lab.Skip as e:
        print(f'SKIP {e}')
        code = EXIT_SKIP
    except lab.Failure as e:
        print(f'  {e}')
    except (Exception, SystemExit):  # whatever a case meets, its processes end and its logs are shown
        traceback.print_exc(file=sys.stdout)
    finally:
        if code == 1:
            print(world.tails(60))
        world.close(keep)
        if keep:
            print(f'  kept: {world.dir}')
    return code


def plan(a):
    """(case, engine) pairs to run."""
    for name, c in CASES.items():
        named = any(fnmatch.fnmatch(name, pattern) for pattern in a.cases)
        if (a.cases and not named) or (not a.cases and not a.full and not c.quick):
            continue
        if a.engine in ('uring', 'epoll', 'auto'):
            engines = [a.engine]
        elif c.engines == 'any':
            engines = ['auto']
        elif a.engine == 'both' or a.full or c.engines == 'both':
            engines = ['uring', 'epoll']
        else:
            engines = ['uring' if lab.uring_is_permitted() else 'epoll']
        for engine in engines:
            yield c, engine


class Running:
    """A case in its own process."""

    def __init__(self, a, c, engine, top):
        self.c, self.title, self.start = c, f'{a.label}: {c.name} ({engine})', time.monotonic()
        self.deadline = self.start + c.seconds * a.scale * (3 if a.full else 1) * (10 if a.prefix else 1)
        argv = [sys.executable, os.path.abspath(__file__), '--one', c.name, '--top', top, '--engine', engine,
                '--server', a.server, '--stock', a.stock, '--aead', a.aead, '--workers', str(a.workers),
                '--prefix', a.prefix]
        argv += ['--full'] * a.full + ['--keep'] * a.keep
        self.out = tempfile.TemporaryFile(mode='w+', dir=top)
        self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT,
                                      start_new_session=True)
        self.is_late = False

    def poll(self):
        """True when it has ended; ends it when its time is over."""
        now = time.monotonic()
        if now > self.deadline + 20:
            self.popen.kill()
        elif now > self.deadline and not self.is_late:
            self.is_late = True
            self.popen.terminate()
        return self.popen.poll() is not None

    def result(self):
        self.out.seek(0)
        text = self.out.read()
        code = self.popen.returncode
        if code == EXIT_SKIP:
            return 'SKIP', next((x[5:] for x in text.splitlines() if x.startswith('SKIP ')), '?')
        return ('PASS', '') if code == 0 else ('FAIL', text)


def report(a, done):
    word, text = done.result()
    seconds = time.monotonic() - done.start
    note = f': {text}' if word == 'SKIP' else ''
    print(f'{word} {done.title}  {seconds:.1f} s{note}', flush=True)
    if word == 'FAIL':
        print(text, flush=True)
    if a.results:
        with open(a.results, 'a', encoding='utf-8') as f:
            f.write(f'{word} {done.title}{note}\n')
    return word


def run_all(a, top):
    todo, running, counts = list(plan(a)), [], collections.Counter()
    pki.Pki(os.path.join(top, 'pki'))
    try:
        while todo or running:
            while todo and len(running) < a.jobs:
                running.append(Running(a, *todo.pop(0), top))
            for done in [r for r in running if r.poll()]:
                running.remove(done)
                counts[report(a, done)] += 1
            time.sleep(0.05)
    finally:
        for r in running:
            r.popen.terminate()
        for r in running:
            r.popen.wait()
    return counts


def main():
    a = arguments()
    if a.one:
        return run_one(a)
    if a.list:
        for name, c in CASES.items():
            print(f'{name:32} {"quick" if c.quick else "full ":5} {c.engines:5} {c.doc}')
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    top = tempfile.mkdtemp(prefix='shardvpn-interop.')
    try:
        counts = run_all(a, top)
    except KeyboardInterrupt:
        return 130
    finally:
        if not a.keep:
            shutil.rmtree(top, ignore_errors=True)
    print(f'{counts["PASS"]} passed, {counts["FAIL"]} failed, {counts["SKIP"]} skipped')
    return 1 if counts['FAIL'] or not counts['PASS'] else 0


if __name__ == '__main__':
    sys.exit(main())
