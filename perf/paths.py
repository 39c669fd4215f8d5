# SPDX-License-Identifier: Apache-2.0
"""Where things stand; importing this lets the scripts of perf/ import tests/support as well."""
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, 'perf/results')
sys.path.insert(1, os.path.join(ROOT, 'tests/support'))
