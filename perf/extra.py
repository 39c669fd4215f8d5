# SPDX-License-Identifier: Apache-2.0
"""A measurement of its own: a module with TITLE, measure(bench, say) -> data, lines(data) -> Markdown and
figures_of(data). main() runs one alone."""
import json
import sys

import bench
import figures
import lab


def main(module):
    a = bench.parse(module.__doc__, lambda p: p.add_argument('--json', action='store_true', help='the data at the end'))
    try:
        with bench.Bench(a) as b:
            lab.expect(not b.missing(), f'missing: {", ".join(b.missing())}')
            got = module.measure(b, lambda text: print(text, flush=True))
    except lab.Failure as failure:
        sys.exit(f'{module.TITLE}: {failure}')
    found = module.figures_of(got)
    print('\n'.join(['', *module.lines(got), '', *figures.table(found)]))
    if a.json:
        print(json.dumps(got))
    return 1 if any(f.is_good is False for f in found) else 0
