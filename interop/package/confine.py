"""Runs a program under the system calls that a unit of systemd allows: UNIT PROGRAM ARGUMENT...

It does for SystemCallFilter, RestrictAddressFamilies and MemoryDenyWriteExecute as systemd does, so
that a test needs no systemd as the first process.
"""

import errno
import os
import re
import subprocess
import sys

import seccomp

FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
PROT_WRITE, PROT_EXEC = 2, 4


def expanded(name):
    """The system calls of a set such as @chown, and of the sets in it."""
    if not name.startswith("@"):
        return {name}
    command = ["systemd-analyze", "syscall-filter", name]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.strip() for line in text.splitlines()[1:]]
    return set().union(*(expanded(line) for line in lines if line and not line.startswith("#")))


def allowed(unit):
    """The system calls that the lines of the unit leave, and those that systemd always allows."""
    calls = set()
    for inverted, names in re.findall(r"(?m)^SystemCallFilter=(~?)(.+)$", unit):
        named = set().union(*(expanded(name) for name in names.split()))
        calls = calls - named if inverted else calls | named
    return calls | expanded("@default")


def main():
    unit_path, *command = sys.argv[1:]
    with open(unit_path) as file:
        unit = file.read()
    families = re.search(r"(?m)^RestrictAddressFamilies=(.+)$", unit)[1].split()
    calls = allowed(unit)
    restricted = {"socket", "mmap", "mprotect"}
    known = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for call in calls - restricted:
        try:
            known.add_rule(seccomp.ALLOW, call)
        except (RuntimeError, ValueError, OSError):
            # A call of another architecture.
            continue
    for family in families:
        known.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, FAMILIES[family]))
    # As systemd: no page is made both writable and executable, and none executable later.
    masked = seccomp.MASKED_EQ
    for protection in (0, PROT_WRITE):
        mask = PROT_WRITE | PROT_EXEC
        known.add_rule(seccomp.ALLOW, "mmap", seccomp.Arg(2, masked, mask, protection))
    known.add_rule(seccomp.ALLOW, "mmap",
                   seccomp.Arg(2, masked, PROT_WRITE | PROT_EXEC, PROT_EXEC))
    known.add_rule(seccomp.ALLOW, "mprotect", seccomp.Arg(2, masked, PROT_EXEC, 0))
    known.load()
    os.execv(command[0], command)


main()
