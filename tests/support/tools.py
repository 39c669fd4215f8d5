# SPDX-License-Identifier: Apache-2.0
"""Small C programs of the tests, compiled when a case needs them."""
import os
import subprocess

from lab import Skip

HERE = os.path.dirname(os.path.abspath(__file__))


def compiled(lab, source, output=None, flags=(), libraries=()):
    """Path of the program made of tests/support/`source`; the case is skipped if it cannot be made."""
    path = lab.path(output or source.rsplit('.', 1)[0])
    p = subprocess.run([os.environ.get('CC', 'cc'), '-D_GNU_SOURCE', '-O1', *flags, '-o', path, os.path.join(HERE, source),
                        *libraries], capture_output=True, text=True, check=False)
    if p.returncode != 0:
        raise Skip(f'{source} cannot be compiled here: {p.stderr[:200]}')
    return path
