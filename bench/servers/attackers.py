"""Strangers who attack a receiver at full rate while it is measured: those of the tests, in a process of their own."""

import signal
import subprocess
import sys

from bench.load.sending import ROOT
from hookonce.receiver.processes import spawn

CONNECTIONS = {
    "pipelined forgeries": 200,
    "pipelined, nothing read": 200,
    "chunks of one byte": 200,
    "chunk extensions": 200,
    "trailers": 200,
    "endless heads": 200,
    "heads held open": 2000,
    "large forged bodies": 64,
    "idle connections": 6000,
    "junk": 200,
}
"""The attacks, and from how many connections each comes."""
TORRENT = "pipelined forgeries"
_FLOOD = "tests.support.attacks.flood"


def attacking(name: str, port: int, connections: int, seconds: float) -> subprocess.Popen[bytes]:
    """Start an attack that ends by itself after so long."""
    command = [sys.executable, "-m", _FLOOD, name, str(port), str(connections), str(seconds)]
    return subprocess.Popen(  # noqa: S603  our own program
        spawn.command(command, on_death=signal.SIGKILL),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
