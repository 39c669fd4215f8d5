#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shape of the source tree, held to the rules: arrows between folders and modules, no include
cycles, walls around third-party headers, headers that compile alone, contracts, sizes.

usage: check.py [ROOT]      one TAP line a rule; exit code 1 if one is broken
"""
import concurrent.futures
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ['crypto', 'config', 'tun', 'workers', 'server/control', 'server/admin', 'server']

# folder -> folders it may include from (its own is always allowed)
BELOW = {
    'crypto': [],
    'config': ['crypto'],
    'tun': ['config', 'crypto'],
    'workers': ['tun', 'config', 'crypto'],
    'server/control': ['config', 'crypto'],
    'server/admin': ['workers', 'config', 'crypto'],
    'server': ['server/admin', 'server/control', 'workers', 'tun', 'config', 'crypto'],
}
# What of the workers the admin side may see: what they count and say, not what they do.
ADMIN_SEES = {'workers/messages.h', 'workers/counters.h', 'workers/mailbox.h', 'workers/worker.h'}

# header pattern -> files that may include it
WALLS = [
    (r'liburing', r'workers/io_uring(_\w+)?\.[ch]$'),
    (r'ck_', r'(workers/(mailbox|route_table(_\w+)?)\.c|server/admin/observer\.c)$'),
    (r'linux/filter\.h', r'workers/steering(_\w+)?\.c$'),
    (r'linux/bpf\.h', r'workers/tun_steering(_\w+)?\.c$'),
    (r'intel-ipsec-mb', r'crypto/aead_mb\.c$'),
    (r'openssl/', r'(crypto/\w+|server/control/(tls|verify)\w*)\.[ch]$'),
    (r'event2/|event\.h|evhttp', r'server/(?!control/)'),
    (r'netlink/', r'tun/netlink(_\w+)?\.c$'),
    (r'jansson', r'server/admin/'),
    (r'systemd/', r'server/privilege(_\w+)?\.c$'),
    (r'jemalloc/', r'(workers|server)/'),
]
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FUNCTION_P90_MAX = 40


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8', errors='replace') as f:
        return f.read()


def source_files():
    """Every source file of the product, by path from the root."""
    out = []
    for folder in FOLDERS:
        top = os.path.join(ROOT, folder)
        if os.path.isdir(top):
            out += [f'{folder}/{n}' for n in sorted(os.listdir(top)) if n.endswith(('.c', '.h'))]
    return out


def folder_of(path):
    return os.path.dirname(path)


def module_of(path):
    return os.path.splitext(path)[0]


def owner_of(path):
    """The module a file belongs to: a header without a .c is a private part of the module it is
    named after, if there is one (aead_engine.h of aead)."""
    module = module_of(path)
    whole = module
    while not os.path.exists(os.path.join(ROOT, module + '.c')) and '_' in os.path.basename(module):
        module = module.rsplit('_', 1)[0]
    return module if os.path.exists(os.path.join(ROOT, module + '.c')) else whole


def includes(path):
    """(line, header, is_ours) of each include."""
    for n, line in enumerate(read(path).splitlines(), 1):
        m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if m:
            yield n, m.group(2), m.group(1) == '"'


def load_arrows():
    """folder -> (edges upper -> {lower}, leaves)."""
    arrows, folder = {}, None
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'arrows.txt'),
              encoding='utf-8') as f:
        for line in f:
            line = line.split('#')[0].strip()
            if not line:
                continue
            names = lambda text: [w.strip() for w in text.split(',') if w.strip()]
            if line.startswith('leaf:'):
                arrows[folder][1].update(names(line[5:]))
            elif line.endswith(':'):
                folder = line[:-1]
                arrows[folder] = ({}, set())
            else:
                steps = [names(part) for part in line.split('<-')]
                for lower, upper in zip(steps, steps[1:]):
                    for u in upper:
                        arrows[folder][0].setdefault(u, set()).update(lower)
    return arrows


def reachable(edges, start):
    seen, todo = set(), [start]
    while todo:
        for low in edges.get(todo.pop(), ()):
            if low not in seen:
                seen.add(low)
                todo.append(low)
    return seen


def check_folder_arrows(files):
    for path in files:
        for n, header, ours in includes(path):
            target = os.path.dirname(header)
            if not ours or target == folder_of(path):
                continue
            if target not in BELOW.get(folder_of(path), []):
                yield f'{path}:{n}: {folder_of(path)} must not include {header}'
            elif folder_of(path) == 'server/admin' and target == 'workers' and header not in ADMIN_SEES:
                yield f'{path}:{n}: of the workers, the admin side sees {sorted(ADMIN_SEES)}'


def check_module_arrows(files):
    arrows = load_arrows()
    for path in files:
        edges, leaves = arrows[folder_of(path)]
        me = os.path.basename(module_of(path))
        # A part that was split off a module follows its arrows and serves it: udp_open of udp.
        owner = me
        while owner not in edges and '_' in owner:
            owner = owner.rsplit('_', 1)[0]
        allowed = reachable(edges, me) | reachable(edges, owner) | {me, owner}
        for n, header, ours in includes(path):
            low = os.path.basename(module_of(header))
            if not ours or os.path.dirname(header) != folder_of(path) or low in leaves:
                continue
            if low not in allowed and not any(low.startswith(a + '_') for a in allowed):
                yield f'{path}:{n}: no arrow lets {me} include {header}'


def components(graph):
    """Strongly connected components with more than one member (Tarjan, without recursion depth)."""
    sys.setrecursionlimit(10000)
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            members = []
            while not members or members[-1] != v:
                members.append(stack.pop())
                on.discard(members[-1])
            if len(members) > 1:
                out.append(sorted(members))
    for v in graph:
        if v not in index:
            visit(v)
    return out


def check_cycles(files):
    for what, name in (('files', lambda p: p), ('modules', owner_of)):
        graph = {name(p): set() for p in files}
        for path in files:
            for _, header, ours in includes(path):
                if ours and name(header) in graph and name(header) != name(path):
                    graph[name(path)].add(name(header))
        for members in components(graph):
            yield f'{what} include each other: ' + ' '.join(members)


def check_include_form(files):
    for path in files:
        for n, header, ours in includes(path):
            if ours and not header.endswith('.inc') and not os.path.exists(os.path.join(ROOT, header)):
                yield f'{path}:{n}: "{header}" is not written from the root'


def check_walls(files):
    for path in files:
        for n, header, ours in includes(path):
            for pattern, allowed in WALLS:
                if not ours and re.match(pattern, header) and not re.match(allowed, path):
                    yield f'{path}:{n}: <{header}> stays behind its wall ({allowed})'


def dependency_flags():
    names = ['libcrypto', 'libssl', 'liburing', 'ck', 'libevent', 'libnl-route-3.0', 'jansson']
    flags = []
    for name in names:
        p = subprocess.run(['pkg-config', '--cflags', name], capture_output=True, text=True, check=False)
        flags += p.stdout.split() if p.returncode == 0 else []
    return flags


def compile_alone(path, flags):
    cmd = ['cc', '-std=gnu17', '-D_GNU_SOURCE', '-fsyntax-only', '-Wall', '-Wextra', '-I', ROOT, *flags,
           '-x', 'c', '-include', os.path.join(ROOT, path), '/dev/null']
    p = subprocess.run(cmd, capture_output=True, text=True, check=False)
    return '' if p.returncode == 0 and not p.stderr else f'{path} does not compile alone:\n{p.stderr.strip()}'


def check_headers_alone(files):
    flags = dependency_flags()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(compile_alone, p, flags) for p in files if p.endswith('.h')]
        for job in jobs:
            if job.result():
                yield job.result()


def is_prototype(line):
    return re.match(r'^(?!static|typedef|extern|#|\}|struct \w+;|enum \w+ \{)[A-Za-z_][\w\s\*]*\(', line)


def is_documented(lines, at):
    """A comment ends on the line above, or above the block of prototypes this one stands in."""
    while at > 0 and lines[at - 1].strip():
        at -= 1
        if lines[at].rstrip().endswith('*/') and not lines[at].rstrip().split('/*')[0].rstrip().endswith(';'):
            return True
    return False


def check_contracts(files):
    for path in (p for p in files if p.endswith('.h')):
        lines = read(path).splitlines()
        for n, line in enumerate(lines):
            if is_prototype(line) and not is_documented(lines, n):
                yield f'{path}:{n + 1}: no contract above: {line.strip()[:70]}'


def functions(path):
    """(name, line, length) of each function: its body opens and closes with a brace in column 0."""
    lines = read(path).splitlines()
    start = None
    for n, line in enumerate(lines):
        if line.rstrip() == '{':
            start = n
            while start > 0 and lines[start - 1].strip() and lines[start - 1][0] not in '}#/ *':
                start -= 1
        elif line.startswith('}') and start is not None:
            m = re.search(r'(\w+)\s*\(', ' '.join(lines[start:start + 3]))
            yield (m.group(1) if m else '?'), start + 1, n - start + 1
            start = None


def check_sizes(files):
    lengths = []
    for path in files:
        count = len(read(path).splitlines())
        if count > FILE_LINES_MAX:
            yield f'{path}: {count} lines; at most {FILE_LINES_MAX}: split out a noun'
        for name, line, length in functions(path):
            lengths.append(length)
            if length > FUNCTION_LINES_MAX:
                yield f'{path}:{line}: {name} has {length} lines; at most {FUNCTION_LINES_MAX}'
    lengths.sort()
    if lengths and lengths[len(lengths) * 9 // 10] > FUNCTION_P90_MAX:
        yield f'functions: 90 % should have at most {FUNCTION_P90_MAX} lines, found {lengths[len(lengths) * 9 // 10]}'


def check_spdx(files):
    for path in files:
        if 'SPDX-License-Identifier: Apache-2.0' not in read(path).split('\n', 1)[0]:
            yield f'{path}: the first line is the SPDX line'


def check_no_daemon_sources_listed_twice(files):
    """Every .c file is built: listed in exactly one meson.build of its folder."""
    for path in (p for p in files if p.endswith('.c')):
        build = read(folder_of(path) + '/meson.build')
        if len(re.findall(r"'" + re.escape(os.path.basename(path)) + "'", build)) != 1:
            yield f'{path}: not listed exactly once in {folder_of(path)}/meson.build'


RULES = [
    ('arch: arrows between folders', check_folder_arrows),
    ('arch: arrows between modules', check_module_arrows),
    ('arch: no include cycle', check_cycles),
    ('arch: includes are written from the root', check_include_form),
    ('arch: third-party headers behind their walls', check_walls),
    ('arch: every header compiles alone', check_headers_alone),
    ('arch: every exported prototype has a contract', check_contracts),
    ('arch: sizes of files and functions', check_sizes),
    ('arch: licence line heads each file', check_spdx),
    ('arch: every source file is built', check_no_daemon_sources_listed_twice),
]


def main():
    files = source_files()
    broken = 0
    print(f'1..{len(RULES)}')
    for n, (name, rule) in enumerate(RULES, 1):
        faults = list(rule(files))
        broken += bool(faults)
        print(f'{"not ok" if faults else "ok"} {n} - {name}', flush=True)
        for fault in faults:
            print('  # ' + fault.replace('\n', '\n  # '))
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
