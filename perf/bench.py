# SPDX-License-Identifier: Apache-2.0
"""What every measurement needs: programs, keys, a folder; and the words of the command line for them."""
import argparse
import os
import shutil
import tempfile

import pki
from paths import ROOT

TOOLS = ('iperf3', 'nft', 'ethtool', 'nsenter', 'ping')


def add_arguments(p):
    p.add_argument('--build', default=os.path.join(ROOT, 'build'), help='build folder: server/shardvpn, perf/swarm ...')
    p.add_argument('--binary', help='our server (of the build folder)')
    p.add_argument('--stock', default='/usr/sbin/openvpn')
    p.add_argument('--cipher', default='AES-256-GCM')
    p.add_argument('--workers', type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument('--udp-rate', type=int, default=25000, help='datagrams a second through the stock client')


class Bench:
    """Use as a context manager; .top is the folder for everything that is written meanwhile."""

    def __init__(self, a):
        self.binary = os.path.abspath(a.binary or os.path.join(a.build, 'server/shardvpn'))
        self.stock = os.path.abspath(a.stock)
        self.swarm, self.source, self.prober = (os.path.abspath(os.path.join(a.build, 'perf', x))
                                                for x in ('swarm', 'source', 'prober'))
        self.cipher, self.workers, self.udp_rate = a.cipher, a.workers, a.udp_rate
        self.folder = tempfile.TemporaryDirectory(prefix='shardvpn-perf.')
        self.top = self.folder.name

    def __enter__(self):
        self.keys = pki.Pki(os.path.join(self.top, 'pki'))
        return self

    def __exit__(self, kind, value, trace):
        self.folder.cleanup()

    def missing(self):
        """Programs that are not there."""
        mine = [x for x in (self.binary, self.stock, self.swarm, self.source, self.prober) if not os.access(x, os.X_OK)]
        return mine + [x for x in TOOLS if not shutil.which(x)]


def parse(doc, add=None):
    """The arguments of a script that takes the common ones and its own (`add`)."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(p)
    if add:
        add(p)
    return p.parse_args()
