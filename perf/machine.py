# SPDX-License-Identifier: Apache-2.0
"""On what was measured, and with what."""
import os
import platform
import re
import subprocess


def _first_line(*argv):
    try:
        out = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10).stdout
    except OSError:
        return 'missing'
    return out.splitlines()[0].strip() if out.strip() else 'unknown'


def _package(name):
    return _first_line('dpkg-query', '-W', '-f', '${Version}', name)


def cpu_model():
    with open('/proc/cpuinfo', encoding='utf-8', errors='replace') as f:
        text = f.read()
    found = re.search(r'^model name\s*: (.*)$', text, re.M)
    flags = re.search(r'^flags\s*: (.*)$', text, re.M)
    flags = set(flags.group(1).split()) if flags else set()
    extras = [x for x in ('vaes', 'avx2', 'avx512f') if x in flags]
    return (found.group(1) if found else platform.machine()) + (f' ({", ".join(extras)})' if extras else '')


def describe(bench):
    """Names and versions, as the report's head shows them."""
    return {
        'CPU': f'{cpu_model()}, {len(os.sched_getaffinity(0))} cores',
        'kernel': f'{platform.system()} {platform.release()}',
        'openvpn': _first_line(bench.stock, '--version'),
        'shardvpn': _first_line(bench.binary, '--version'),
        'OpenSSL': _first_line('openssl', 'version'),
        'ipsec-mb': _package('libipsec-mb1'),
        'liburing': _package('liburing2'),
        'iperf3': _first_line('iperf3', '--version'),
    }
