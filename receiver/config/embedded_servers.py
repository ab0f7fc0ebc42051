"""The addresses of the servers that `hookonce dev` started here, from a file in the data directory."""

import json
from dataclasses import dataclass
from pathlib import Path

from hookonce.receiver.processes import spawn

STATE = "servers.json"


@dataclass(frozen=True)
class Servers:
    """Addresses of the ledger's database and of Redis: a libpq URL and a redis-py URL."""

    database_url: str
    redis_url: str


def running(directory: Path) -> Servers | None:
    """Return the servers that a process runs on this directory by `servers`, one that is down too; None without it."""
    try:
        state = json.loads((directory / STATE).read_text(encoding="utf-8"))
        alive = spawn.started(state["pid"]) == state["started"]
        return Servers(**state["servers"]) if alive else None
    except (OSError, ValueError, LookupError, TypeError):
        return None
