#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results of a test run, one a line in a file: PASS NAME, FAIL NAME or SKIP NAME: REASON.

usage: tally.py meson BUILD_DIR LABEL RESULTS   add what `meson test` logged in BUILD_DIR
       tally.py tap FILE RESULTS                add the lines of a TAP output
       tally.py sum RESULTS                     the closing line; exit code 1 if something failed
"""
import collections
import fnmatch
import glob
import json
import os
import re
import sys

WORDS = {'OK': 'PASS', 'EXPECTEDFAIL': 'PASS', 'SKIP': 'SKIP'}


def add(path, rows):
    with open(path, 'a', encoding='utf-8') as f:
        f.writelines(f'{row}\n' for row in rows)


def from_meson(build, label):
    """Of each test program its result, and each test in it that was skipped."""
    for path in glob.glob(os.path.join(build, 'meson-logs', 'testlog*.json')):
        with open(path, encoding='utf-8') as f:
            for test in map(json.loads, f):
                yield from of_program(test, label)


def of_program(test, label):
    name = f'{label}: {test["name"].split(" / ")[-1].split(":")[-1].strip()}'
    word, text = WORDS.get(test['result'], 'FAIL'), test.get('stdout', '')
    if word == 'SKIP':
        yield f'SKIP {name}: {skip_reason(text)}'
        return
    yield f'{word} {name}'
    for inner, reason in re.findall(r'^ok \d+ - (.*?) # SKIP ?(.*)$', text, re.M):
        yield f'SKIP {name}/{inner}: {reason or "?"}'


def skip_reason(text):
    m = re.search(r'#\s*skip\w*:?\s*(.*)|^SKIP:?\s+(.*)', text or '', re.I | re.M)
    return (m.group(1) or m.group(2) or '?').strip() if m else '?'


def from_tap(path):
    with open(path, encoding='utf-8') as f:
        for line in f:
            m = re.match(r'(not )?ok \d+ - ([^#]*)(#\s*skip\s*(.*))?', line, re.I)
            if m and m.group(3):
                yield f'SKIP {m.group(2).strip()}: {m.group(4)}'
            elif m:
                yield f'{"FAIL" if m.group(1) else "PASS"} {m.group(2).strip()}'


def allowed_skips():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'allowed-skips.txt')
    with open(path, encoding='utf-8') as f:
        rows = [x.strip() for x in f if x.strip() and not x.startswith('#')]
    return [row.split('|') for row in rows]


def is_allowed(text, allowed):
    """text: NAME: REASON, where the name may hold colons itself."""
    return any(fnmatch.fnmatchcase(text, f'{name}: {reason}') for name, reason in allowed)


def summary(path):
    counts, allowed, bad = collections.Counter(), allowed_skips(), []
    with open(path, encoding='utf-8') as f:
        for line in f:
            word, _, text = line.strip().partition(' ')
            if word == 'SKIP' and not is_allowed(text, allowed):
                word, text = 'FAIL', f'{text} (this skip is not on the list)'
            counts[word] += 1
            if word != 'PASS':
                bad.append(f'{word} {text}')
    print('\n'.join(bad))
    print(f'{counts["PASS"]} passed, {counts["FAIL"]} failed, {counts["SKIP"]} skipped')
    return 1 if counts['FAIL'] or not counts['PASS'] else 0


def main():
    if sys.argv[1] == 'meson':
        add(sys.argv[4], from_meson(sys.argv[2], sys.argv[3]))
    elif sys.argv[1] == 'tap':
        add(sys.argv[3], from_tap(sys.argv[2]))
    else:
        return summary(sys.argv[2])
    return 0


if __name__ == '__main__':
    sys.exit(main())
