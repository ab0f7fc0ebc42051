"""Examples at the end of `--help`: lines as they are typed."""

from collections.abc import Iterable

RAW = "\b"
"""Click's mark of a paragraph whose lines are kept."""


def examples(*lines: str) -> str:
    """Return the end of a command's help."""
    return f"{RAW}\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def lines(epilog: str | None) -> Iterable[str]:
    """Return the examples of a command, from the end of its help."""
    return [line.strip() for line in (epilog or "").splitlines()[2:]]
