# SPDX-License-Identifier: Apache-2.0
"""A throw-away PKI on P-256: CA, server, clients, and certificates that must be refused."""
import os
import subprocess

DAY = 86400


def openssl(*words, cwd=None, text=None):
    p = subprocess.run(['openssl', *words], input=text, capture_output=True, text=True, cwd=cwd, check=False)
    if p.returncode != 0:
        raise RuntimeError(f'openssl {" ".join(words)}: {p.stderr}')
    return p.stdout


CONFIG = '''[ca]
default_ca = here
[here]
database = index.txt
new_certs_dir = .
serial = serial
crlnumber = crlnumber
default_md = sha256
default_days = 3650
default_crl_days = 3650
policy = any
unique_subject = no
[any]
commonName = supplied
[server]
basicConstraints = CA:FALSE
keyUsage = digitalSignature
extendedKeyUsage = serverAuth
[client]
basicConstraints = CA:FALSE
keyUsage = digitalSignature
extendedKeyUsage = clientAuth
'''


class Pki:
    """Files in `folder`: ca.crt, NAME.crt, NAME.key, ca2.crt (a stranger's), crl.pem, crl-empty.pem (of before
    the revocation), ta.key."""

    def __init__(self, folder):
        self.dir = folder
        if os.path.exists(self.path('done')):
            return
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name, text in (('conf', CONFIG), ('index.txt', ''), ('serial', '1000\n'), ('crlnumber', '01\n')):
            with open(self.path(name), 'w', encoding='ascii') as f:
                f.write(text)
        for ca in ('ca', 'ca2'):
            self._key(ca)
            openssl('req', '-x509', '-new', '-key', f'{ca}.key', '-subj', f'/CN=Test {ca}', '-days', '3650',
                    '-out', f'{ca}.crt', cwd=folder)
        self._key('client')
        self.issue('server', 'server', own_key=True)
        for n in range(1, 31):
            self.issue(f'client{n}', 'client')
        self.issue('revoked', 'client')
        self.issue('expired', 'client', dates=('20200101000000Z', '20200201000000Z'))
        self.issue('early', 'client', dates=('20990101000000Z', '20990201000000Z'))
        self.issue('wrongusage', 'server')
        self.issue('stranger', 'client', ca='ca2')
        self._ca('-gencrl', '-out', 'crl-empty.pem')
        self._ca('-revoke', 'revoked.crt')
        self._ca('-gencrl', '-out', 'crl.pem')
        for name in ('ta.key', 'other-ta.key'):
            self._static_key(name)
        open(self.path('done'), 'w', encoding='ascii').close()

    def path(self, name):
        return os.path.join(self.dir, name)

    def read(self, name):
        with open(self.path(name), encoding='ascii') as f:
            return f.read()

    def _key(self, name):
        openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', f'{name}.key',
                cwd=self.dir)
        os.chmod(self.path(f'{name}.key'), 0o600)

    def _ca(self, *words, ca='ca'):
        openssl('ca', '-batch', '-config', 'conf', '-cert', f'{ca}.crt', '-keyfile', f'{ca}.key', *words, cwd=self.dir)

    def _static_key(self, name):
        rows = '\n'.join(os.urandom(16).hex() for _ in range(16))
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as f:
            f.write(f'-----BEGIN OpenVPN Static key V1-----\n{rows}\n-----END OpenVPN Static key V1-----\n')

    def issue(self, name, section, ca='ca', dates=None, own_key=False):
        """All clients share one key: what the tests tell apart is the certificate."""
        key = name if own_key else 'client'
        if own_key:
            self._key(name)
        openssl('req', '-new', '-key', f'{key}.key', '-subj', f'/CN={name}', '-out', f'{name}.csr', cwd=self.dir)
        words = ['-startdate', dates[0], '-enddate', dates[1]] if dates else []
        self._ca('-in', f'{name}.csr', '-out', f'{name}.crt', '-notext', '-extensions', section, *words, ca=ca)
        if not own_key:
            os.link(self.path('client.key'), self.path(f'{name}.key'))
