"""The process that listens at a port of this machine, as far as Linux shows it to this user: `/proc`, and no more.

A request to 127.0.0.1 may be answered by another project than the one whose directory this is.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_LISTENING = "0A"
_LOCAL, _STATE, _INODE = 1, 3, 9


class Listener(NamedTuple):
    """A process that listens: its number, its working directory and its command line."""

    pid: int
    directory: str
    command: str


def listener(port: int) -> Listener | None:
    """Return the process that listens at a TCP port; None where there is none, or where it can't be seen."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for entry in _PROC.glob("[0-9]*") if sockets else ():
        with suppress(OSError):
            if any(str(each.readlink()) in sockets for each in (entry / "fd").iterdir()):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                return Listener(int(entry.name), str((entry / "cwd").readlink()), command.strip())
    return None


def _inodes(port: int) -> set[str]:
    found = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / name).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                is_port = int(fields[_LOCAL].rpartition(":")[2], 16) == port
                if is_port and fields[_STATE] == _LISTENING:
                    found.add(fields[_INODE])
    return found
