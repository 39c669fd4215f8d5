#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: deny_syscalls.py NUMBER[,NUMBER...] COMMAND...

Run a command to which these system calls answer EPERM, by a seccomp filter, as containers and
hardened hosts do. 425,426,427 are those of io_uring on every architecture.
"""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_NUMBER, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, DENY = 0x7fff0000, 0x00050000 | 1


def program(numbers):
    code = [(LOAD_NUMBER, 0, 0, 0)]
    for i, n in enumerate(numbers):
        code.append((JUMP_EQUAL, len(numbers) - i, 0, n))
    code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, DENY)]
    return len(code), b''.join(struct.pack('HBBI', *x) for x in code)


class SockFprog(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_char_p)]


def main():
    count, code = program([int(x) for x in sys.argv[1].split(',')])
    prog = SockFprog(count, code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                                                                 ctypes.byref(prog), 0, 0):
        sys.exit(f'seccomp: {os.strerror(ctypes.get_errno())}')
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == '__main__':
    main()
