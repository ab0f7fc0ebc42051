"""Which release of the user's code a worker runs: `HOOKONCE_RELEASE`, or the git revision in the current directory.

Git's own files are read: a container may have a checkout and no git.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

_DIGITS = 12
_SHA = frozenset("0123456789abcdef")


def release(named: str, folder: Path | None = None) -> str:
    """Return the release as it is named, or by its git revision; of neither it is said when the worker started."""
    return named or revision(folder or Path.cwd()) or f"started {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def revision(folder: Path) -> str | None:
    """Return the beginning of the revision that is checked out in a folder, or above it; None if there is none."""
    with suppress(OSError, UnicodeDecodeError):
        for above in (folder, *folder.parents):
            if (git := above / ".git").exists():
                return _checked_out(git if git.is_dir() else _linked(git, "gitdir: "))
    return None


def _checked_out(git: Path) -> str | None:
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return _short(head)
    name = head.removeprefix("ref: ")
    common = _linked(git / "commondir") if (git / "commondir").exists() else git
    for root in (git, common):
        if (root / name).is_file():
            return _short((root / name).read_text())
    return next(_packed(common / "packed-refs", name), None)


def _packed(refs: Path, name: str) -> Iterator[str | None]:
    for line in refs.read_text().splitlines():
        revision, _, of = line.partition(" ")
        if of == name:
            yield _short(revision)


def _linked(file: Path, prefix: str = "") -> Path:
    """Return the folder that a file of git's names, from the file's own."""
    return file.parent / file.read_text().strip().removeprefix(prefix)


def _short(revision: str) -> str | None:
    found = revision.strip()[:_DIGITS]
    return found if found and _SHA.issuperset(found) else None
