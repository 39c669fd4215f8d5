# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, processes and deadlines for tests.

A namespace is anonymous: it lives as long as this process holds its descriptor, and a process that
was started here dies with us. So nothing stays behind, however the test ends, and no name of the
machine is ever touched.
"""
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_ns_lock = threading.RLock()


class Failure(Exception):
    """A test's expectation did not hold."""


class Skip(Exception):
    """This machine cannot run the test."""


def _check(ret, what):
    if ret != 0:
        raise OSError(ctypes.get_errno(), f'{what}: {os.strerror(ctypes.get_errno())}')


def expect(condition, text):
    if not condition:
        raise Failure(text)


IO_URING_SETUP = 425  # the same number on every architecture


def uring_is_permitted():
    """May this process make an io_uring?"""
    params = ctypes.create_string_buffer(120)
    fd = _libc.syscall(IO_URING_SETUP, 4, params)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def wait_until(condition, seconds, text, every=0.03):
    """The first true value of condition(), or Failure after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f'{text() if callable(text) else text} (waited {seconds} s)')
        time.sleep(every)


def die_with_parent(number):
    """This process gets signal `number` when its parent ends."""
    _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


class Process:
    """A child in a namespace, its output in a file that can be waited on."""

    def __init__(self, popen, log, name):
        self.popen, self.log, self.name = popen, log, name
        self.pid = popen.pid

    def text(self, since=0):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            f.seek(since)
            return f.read()

    def mark(self):
        """A place in the log: what comes after it is news."""
        return os.path.getsize(self.log)

    def is_running(self):
        return self.popen.poll() is None

    def find(self, pattern, since=0):
        return re.search(pattern, self.text(since), re.M)

    def wait_log(self, pattern, seconds=10, since=0, ends_ok=False):
        """The match of `pattern` in the log; Failure if it does not come or the process ends."""
        def look():
            alive = self.is_running()
            found = self.find(pattern, since)
            if not found and not alive and not ends_ok:
                raise Failure(f'{self.name} ended with {self.popen.returncode} before it said {pattern!r}')
            return found
        return wait_until(look, seconds, f'{self.name} did not say {pattern!r}')

    def count(self, pattern, since=0):
        return len(re.findall(pattern, self.text(since), re.M))

    def wait_exit(self, seconds=10):
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f'{self.name} did not end within {seconds} s') from None

    def signal(self, number):
        if self.is_running():
            self.popen.send_signal(number)

    def stop(self, seconds=5):
        """SIGTERM, then SIGKILL. Returns the exit code."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.popen.returncode

    def kill(self):
        self.signal(signal.SIGKILL)
        self.popen.wait()

    def tail(self, lines=40):
        # Without the stock daemon's dump of every option it could have.
        said = [x for x in self.text().splitlines() if not re.match(r'^\S+ \S+ us=\d+   ', x)]
        return '\n'.join(f'    {self.name}| {x}' for x in said[-lines:])


class Namespace:
    """A network namespace, held by a descriptor."""

    def __init__(self, name):
        self.name = name
        with _ns_lock:
            home = os.open('/proc/thread-self/ns/net', os.O_RDONLY | os.O_CLOEXEC)
            try:
                _check(_libc.unshare(CLONE_NEWNET), 'unshare')
                self.fd = os.open('/proc/thread-self/ns/net', os.O_RDONLY | os.O_CLOEXEC)
            finally:
                _check(_libc.setns(home, CLONE_NEWNET), 'setns')
                os.close(home)
        self.path = f'/proc/{os.getpid()}/fd/{self.fd}'
        self.ip('link set lo up')

    def enter(self):
        """Move the calling thread here; returns a function that moves it back."""
        home = os.open('/proc/thread-self/ns/net', os.O_RDONLY | os.O_CLOEXEC)
        _check(_libc.setns(self.fd, CLONE_NEWNET), 'setns')

        def leave():
            _check(_libc.setns(home, CLONE_NEWNET), 'setns')
            os.close(home)
        return leave

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM, proto=0):
        """A socket of this namespace, to be used by anyone."""
        with _ns_lock:
            leave = self.enter()
            try:
                return socket.socket(family, kind, proto)
            finally:
                leave()

    def read(self, name):
        """What /proc/net/`name` says here."""
        with _ns_lock:
            leave = self.enter()
            try:
                with open(f'/proc/thread-self/net/{name}', encoding='ascii') as f:
                    return f.read()
            finally:
                leave()

    def argv(self, argv):
        return ['nsenter', f'--net={self.path}', '--'] + argv

    def run(self, command, check=True, seconds=30):
        """Run a short command here; its output."""
        argv = command.split() if isinstance(command, str) else command
        p = subprocess.run(self.argv(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=seconds,
                           stderr=subprocess.STDOUT, text=True, errors='replace', check=False)
        if check and p.returncode != 0:
            raise Failure(f'{self.name}: {" ".join(argv)}: exit code {p.returncode}\n{p.stdout[-600:]}')
        return p.stdout

    def ip(self, words):
        return self.run('ip ' + words)

    def close(self):
        os.close(self.fd)


class Lab:
    """What one test made: a folder, namespaces, processes. Use as a context manager."""

    def __init__(self, name, top=None):
        self.name = name
        self.dir = tempfile.mkdtemp(prefix=name.replace('/', '_') + '.', dir=top)
        self.namespaces, self.processes, self.links, self.cleanups = [], [], 0, []

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def namespace(self, name):
        ns = Namespace(name)
        self.namespaces.append(ns)
        return ns

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text, mode=0o600):
        path = self.path(name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def link(self, a, b, a_name, b_name, mtu=1500):
        """A veth pair between two namespaces, both ends up."""
        a.ip(f'link add {a_name} mtu {mtu} type veth peer name {b_name} mtu {mtu} netns {b.path}')
        a.ip(f'link set {a_name} up')
        b.ip(f'link set {b_name} up')

    def start(self, ns, name, argv, env=None, nofile=None):
        """Start a process in `ns`; it ends with us at the latest."""
        log = self.path(f'{name}.log')
        count = sum(p.name.split('#')[0] == name for p in self.processes)
        if count:
            name = f'{name}#{count + 1}'
            log = self.path(f'{name}.log')
        parent, fd = os.getpid(), ns.fd

        def prepare():
            _libc.setns(fd, CLONE_NEWNET)
            os.setpgid(0, 0)
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(127)
        with open(log, 'wb') as out:
            popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                     preexec_fn=prepare, env={**os.environ, **(env or {})}, cwd=self.dir)
        p = Process(popen, log, name)
        self.processes.append(p)
        return p

    def tails(self, lines=40):
        return '\n'.join(p.tail(lines) for p in self.processes)

    def close(self, keep=False):
        for undo in reversed(self.cleanups):
            undo()
        for p in reversed(self.processes):
            if p.is_running():
                p.signal(signal.SIGCONT)
                p.signal(signal.SIGTERM)
        end = time.monotonic() + 3
        for p in reversed(self.processes):
            try:
                p.popen.wait(max(0.05, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                p.kill()
        for ns in self.namespaces:
            ns.close()
        self.processes, self.namespaces, self.cleanups = [], [], []
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)
