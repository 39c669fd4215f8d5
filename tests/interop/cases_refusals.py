# SPDX-License-Identifier: Apache-2.0
"""Clients that must not get in, and limits that are reached: what is logged, what the others notice.

    srv (server, 10.80.0.1)  --- veth 10.71.0.0/24 ---  c0 (stock client that gets in)
                             --- veth 10.71.1.0/24 ---  c1 (the one refused) ...
"""
import os
import time

from case import case, expect, wait_until
from pki import openssl

FAILED = r'TLS Error: TLS handshake failed'


def refuse(t, server, pattern, cert, ca='ca.crt', wrap='plain', words=()):
    """One client that fails; the line of the log that says why."""
    mark = server.mark()
    client = t.client('--hand-window', '8', *words, cert=cert, ca=ca, wrap=wrap, wait=False)
    if pattern:
        server.wait_log(pattern, 10, mark)
        server.wait_log(FAILED, 10, mark)
    expect(not client.process.find('Initialization Sequence Completed'), f'{cert} got in')
    client.stop()


@case()
def bad_certificates(t):
    """expired, not yet valid, revoked, from a stranger's CA: one clear line each, the others go on"""
    server = t.server(f'crl-verify {t.pki.path("crl.pem")}')
    good = t.client(cert='client1')
    for cert, why in (('expired', 'certificate has expired'), ('early', 'certificate is not yet valid'),
                      ('revoked', 'certificate revoked'),
                      ('stranger', r'unable to get (local )?issuer certificate|self.signed certificate')):
        refuse(t, server, rf'VERIFY ERROR: depth=0, error=({why}): CN={cert}, serial=\d+', cert)
        good.ping(100)
    if t.setup.is_ours:
        wait_until(lambda: server.metrics().sum('shardvpn_handshakes_finished_total', result='cert_rejected') >= 4, 4,
                   'cert_rejected was not counted')


@case()
def revoked_after_root_was_given_up(t):
    """user nobody, keys that only root may read: whoever is revoked later is refused all the same"""
    for folder in (t.lab.dir, os.path.dirname(t.lab.dir)):
        os.chmod(folder, 0o711)
    crl = t.lab.write('later.pem', t.pki.read('crl-empty.pem'), 0o644)
    server = t.server(f'crl-verify {crl}', 'user nobody', 'group nogroup', 'persist-key')
    t.client(cert='revoked').stop()
    with open(crl, 'w', encoding='ascii') as f:
        f.write(t.pki.read('crl.pem'))
    time.sleep(1.5)
    refuse(t, server, r'VERIFY ERROR: depth=0, error=certificate revoked: CN=revoked', 'revoked')
    t.client(cert='client1').ping(100)


@case()
def wrong_usage(t):
    """remote-cert-tls client: a server's certificate does not make a client"""
    server = t.server('remote-cert-tls client')
    refuse(t, server, r'VERIFY ERROR: depth=0, error=unsuitable certificate purpose: CN=wrongusage|VERIFY (EKU|KU) ERROR',
           'wrongusage')
    t.client(cert='client1').ping(100)


@case(quick=False)
def no_certificate(t):
    """a client without a certificate is refused unless verify-client-cert says otherwise"""
    server = t.server()
    client = t.client('--hand-window', '8')
    client.stop()
    for flag in ('--cert', '--key'):
        at = client.argv.index(flag)
        del client.argv[at:at + 2]
    mark = server.mark()
    client.argv += ['--auth-user-pass', t.lab.write('up', 'name\npassword\n')]
    client.start()
    server.wait_log(r'peer did not return a certificate', 10, mark)
    server.wait_log(FAILED, 10, mark)


@case()
def wrong_wrapping_key(t):
    """a client with another tls-crypt key gets no answer and leaves no trace but a counter"""
    server = t.server(wrap='crypt')
    client = t.client('--hand-window', '4', '--tls-crypt', t.pki.path('other-ta.key'), wait=False)
    client.process.wait_log('TLS key negotiation failed to occur within 4 seconds', 12)
    expect(not client.process.find('TLS: Initial packet from'), 'the server answered')
    t.client(wrap='crypt').ping(100)
    if t.setup.is_ours:
        wait_until(lambda: server.metrics().sum('shardvpn_dropped_packets_total', reason='control_hmac') >= 1, 4,
                   'control_hmac was not counted')


@case()
def max_clients(t):
    """max-clients: one more is refused with a line, and gets in once there is room"""
    server = t.server('max-clients 2')
    clients = [t.client('--explicit-exit-notify', '1', cert=f'client{n + 1}') for n in range(2)]
    mark = server.mark()
    late = t.client(cert='client3', wait=False)
    server.wait_log(r'MULTI: new incoming connection (from \S+ )?would exceed maximum number of clients', 10, mark)
    expect(not late.process.find('Initialization Sequence Completed'), 'one client too many got in')
    clients[0].ping(100)
    clients[1].stop()
    late.wait_connected(40)
    late.ping(100)


@case()
def pool_exhausted(t):
    """no address left: a clear line, the clients that have one go on"""
    server = t.server('mode server', 'tls-server', 'ifconfig 10.80.0.1 255.255.255.0',
                      'ifconfig-pool 10.80.0.2 10.80.0.3 255.255.255.0', 'push "route-gateway 10.80.0.1"',
                      'push "topology subnet"', drop=['server', 'server-ipv6'])
    clients = [t.client('--explicit-exit-notify', '1', cert=f'client{n + 1}') for n in range(2)]
    mark = server.mark()
    late = t.client(cert='client3', wait=False)
    server.wait_log(r'MULTI: no free --ifconfig-pool addresses are available', 10, mark)
    for c in clients:
        c.ping(100)
    late.stop()
    mark = server.mark()
    clients[0].stop()
    server.wait_log('client1/.*client-instance exiting', 12, mark)
    if t.setup.is_ours:
        wait_until(lambda: server.metrics().sum('shardvpn_address_pool_used', family='ipv4') == 1 or
                   server.metrics().sum('shardvpn_address_pool_used') == 1, 10, 'the address was not given back')
    t.client(cert='client4').ping(100)


@case()
def same_name_again(t):
    """without duplicate-cn the second client of a name replaces the first"""
    server = t.server()
    first = t.client(cert='client1')
    first.process.signal(19)  # SIGSTOP: it must not come back and replace the second
    mark = server.mark()
    second = t.client(cert='client1')
    server.wait_log(r"MULTI: new connection by client 'client1' will cause previous active sessions by this client "
                    r'to be dropped', 5, mark)
    second.ping(100, 3)


@case(ours=True, quick=False, engine=False)
def crl_in_the_ca_file(t):
    """a CRL that came with the CA file still counts after the one of crl-verify has changed"""
    other = t.lab.path('crl2.pem')
    openssl('ca', '-batch', '-config', 'conf', '-cert', 'ca2.crt', '-keyfile', 'ca2.key', '-gencrl', '-out', other,
            cwd=t.pki.dir)
    ca = t.lab.write('ca.pem', t.pki.read('ca.crt') + t.pki.read('crl.pem'))
    server = t.server(f'ca {ca}', f'crl-verify {other}', drop=['ca'])
    with open(other, 'a', encoding='ascii') as f:
        f.write('\n')
    server.wait_log('the CRL was read again', 10)
    client = t.client(cert='revoked', wait=False)
    server.wait_log('certificate revoked', 15)
    expect(client.process.count('Initialization Sequence Completed') == 0, 'a revoked client got in')
