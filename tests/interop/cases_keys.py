# SPDX-License-Identifier: Apache-2.0
"""Keys: TLS versions, both derivations, renegotiation in mid-transfer, from either side.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24 ---  c0 (stock client, 10.80.0.2)
"""
from case import case, expect, wait_until
from tools import compiled
from traffic import Transfer
from vpn import INSIDE4

# Bits of IV_PROTO (wire.md, section 8) that a client may lack.
TLS_EKM, CC_EXIT, DYN_TLS_CRYPT = 8, 128, 512
STOCK_IV_PROTO = 990


def shim_env(t, without):
    """Environment that makes a stock client deny some bits of IV_PROTO."""
    library = compiled(t.lab, 'peer_info_shim.c', 'peer_info_shim.so', ['-shared', '-fPIC'], ['-ldl'])
    return {'LD_PRELOAD': library, 'PEER_INFO_FROM': f'IV_PROTO={STOCK_IV_PROTO}',
            'PEER_INFO_TO': f'IV_PROTO={STOCK_IV_PROTO - without}'}


def check_tls(t, version):
    server = t.server()
    client = t.client('--tls-version-max', version, '--tls-version-min', version)
    client.process.wait_log(rf'Control Channel: TLSv{version}', 5)
    server.wait_log(rf'Control Channel: TLSv{version}', 5)
    client.ping(100, 3)


@case()
def tls_1_2(t):
    """TLS 1.2"""
    check_tls(t, '1.2')


@case(quick=False)
def tls_1_3(t):
    """TLS 1.3"""
    check_tls(t, '1.3')


@case()
def older_derivation(t):
    """a client without the exporter bit gets keys from the older PRF"""
    server = t.server('reneg-sec 6')
    client = t.client(env=shim_env(t, TLS_EKM))
    server.wait_log(rf'IV_PROTO={STOCK_IV_PROTO - TLS_EKM}', 5)
    expect(not any('tls-ekm' in x for x in client.push_reply()), f'the exporter was announced: {client.push_reply()}')
    client.ping(500, 3)
    Transfer(client.ns, t.net.srv, INSIDE4, 4 << 20, seconds=9).wait(40)
    expect(client.process.count('Control Channel: TLS') >= 2, 'no renegotiation was seen')


@case(quick=False)
def renegotiation_without_dynamic_tls_crypt(t):
    """a client without the dynamic tls-crypt bit renegotiates under the old wrapping"""
    t.server('reneg-sec 5', wrap='crypt')
    client = t.client(wrap='crypt', env=shim_env(t, DYN_TLS_CRYPT))
    Transfer(client.ns, t.net.srv, INSIDE4, 4 << 20, seconds=12).wait(40)
    expect(client.process.count('Control Channel: TLS') >= 2, 'no renegotiation was seen')


def check_renegotiation(t, server_lines, client_words, wrap):
    """Two renegotiations while bytes move both ways, none lost, no second connection."""
    server = t.server(*server_lines, wrap=wrap)
    client = t.client(*client_words, wrap=wrap)
    seconds = 13 if t.is_quick else 65
    total = t.bytes(20)
    moves = [Transfer(client.ns, t.net.srv, INSIDE4, total, seconds),
             Transfer(t.net.srv, client.ns, client.address(), total, seconds)]
    for m in moves:
        m.wait(seconds + 60)
    expect(client.process.count('Control Channel: TLS') >= 3, 'fewer than two renegotiations were seen')
    expect(client.process.count('Initialization Sequence Completed') == 1, 'the client had to start again')
    expect(not client.process.find('Authenticate/Decrypt packet error'), 'the client could not open a packet')
    server.expect_alive()
    client.ping(100, 5)
    if t.setup.is_ours:
        m = server.metrics()
        expect(m.sum('shardvpn_dropped_packets_total', reason='decrypt') == 0, 'packets failed to open')
        wait_until(lambda: server.metrics().sum('shardvpn_renegotiations_total', result='ok') >= 2, 4,
                   'renegotiations were not counted')


@case(both=True, seconds=90)
def renegotiation_by_client(t):
    """--reneg-sec of the client in mid-transfer, both ways, with tls-crypt (dynamic)"""
    check_renegotiation(t, [], ['--reneg-sec', '5' if t.is_quick else '20'], 'crypt')


@case(both=True, seconds=90)
def renegotiation_by_server(t):
    """reneg-sec of the server in mid-transfer, both ways"""
    check_renegotiation(t, ['reneg-sec 5' if t.is_quick else 'reneg-sec 20'], [], 'plain')


@case(quick=False, seconds=90)
def renegotiation_by_both(t):
    """both sides renegotiate at about the same time, with tls-auth"""
    check_renegotiation(t, ['reneg-sec 6'], ['--reneg-sec', '6'], 'auth')


@case(quick=False)
def renegotiation_after_bytes(t):
    """reneg-bytes of the server: a new key after so many bytes"""
    t.server('reneg-bytes 3000000')
    client = t.client()
    Transfer(client.ns, t.net.srv, INSIDE4, 12 << 20, seconds=8).wait(40)
    expect(client.process.count('Control Channel: TLS') >= 2, 'no renegotiation was seen')
