"""Senders that need no module: what a source says of them, in `docs/providers-declared/`, each with one delivery.

A key of the kit's own signs the delivery: what is shown is that the declaration can be read, signs, and refuses what
was changed, and not that the sender's page was understood. A `vector` shows that: it is the sender's own.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load

FOLDER = Path(__file__).parents[2] / "docs" / "providers-declared"


@dataclass(frozen=True)
class Declared:
    """One file: a sender's page, what it signs, the source's table, and a delivery with its event."""

    name: str
    said: dict[str, Any]

    @property
    def provider(self) -> Provider:
        """The generic provider with the options of the table."""
        generic = self.said["source"]["provider"]
        return load(generic, options=self.said["source"][generic])

    @property
    def lines(self) -> list[str]:
        """What stands under `provider` in the file: the options last."""
        text = (FOLDER / f"{self.name}.toml").read_text(encoding="utf-8")
        return text.partition("[source]\n")[2].strip().splitlines()[1:]


@cache
def declared() -> tuple[Declared, ...]:
    """All of them, by name."""
    files = sorted(FOLDER.glob("*.toml"))
    return tuple(Declared(path.stem, tomllib.loads(path.read_text(encoding="utf-8"))) for path in files)
