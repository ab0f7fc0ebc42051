"""The introduction of a long-running process: one block for the person who has started it.

It goes to stderr as plain text, before the log's lines of JSON. A name is the configuration's; no address of a server
with its password is among them.
"""

import os
import sys
import textwrap
from collections.abc import Collection, Sequence
from importlib.metadata import version

DONE = "HOOKONCE_INTRODUCED"
"""Set where `hookonce dev` has said more of all its processes than each could say of itself."""
WIDTH = 79
_NAMES = 8
"""Names of a kind; the rest is counted."""


def introduce(command: str, does: str, parts: Sequence[tuple[str, str]]) -> None:
    """Say on stderr what a command is, and its parts: a line each, two where one is too short."""
    if os.environ.get(DONE):
        return
    width = max(len(name) for name, _ in parts)
    lines = [f"hookonce {version('hookonce')} {command}: {does}"]
    for name, text in parts:
        lead = f"  {name:<{width}}  "
        lines += textwrap.wrap(
            text,
            WIDTH,
            initial_indent=lead,
            subsequent_indent=" " * len(lead),
            max_lines=2,
            placeholder=" …",
            break_on_hyphens=False,
        )
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()


def named(names: Collection[str], otherwise: str) -> str:
    """Return how many there are, and the first of them by name; or what there is to say where there is none."""
    if not names:
        return otherwise
    first = sorted(names)[:_NAMES]
    return f"{len(names)}: {', '.join(first)}" + (", …" if len(names) > _NAMES else "")
