# SPDX-License-Identifier: Apache-2.0
"""Who is compared: the columns of the report."""
import collections

# kind: stock, ours, or bare (no tunnel at all)
Contestant = collections.namedtuple('Contestant', 'key title kind engine aead')

STOCK, OURS, OPENSSL, EPOLL, BARE = 'stock', 'ours', 'openssl', 'epoll', 'bare'

ALL = [
    Contestant(STOCK, 'openvpn', 'stock', 'auto', 'auto'),
    Contestant(OPENSSL, 'OpenSSL, io_uring', 'ours', 'uring', 'openssl'),
    Contestant(OURS, 'ipsec-mb, io_uring', 'ours', 'uring', 'ipsec-mb'),
    Contestant(EPOLL, 'ipsec-mb, epoll', 'ours', 'epoll', 'ipsec-mb'),
    Contestant(BARE, 'no tunnel', 'bare', 'auto', 'auto'),
]
BY_KEY = {c.key: c for c in ALL}
