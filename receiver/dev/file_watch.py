"""Changes of a project's files, told within a fraction of a second (watchfiles, by inotify and its kin).

Only folders that may hold code are watched, one by one: environments, packages of JavaScript and whatever begins with
a dot, PostgreSQL's data under `.hookonce` among them, change all day long and would cost inotify's limits besides.
"""

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import watchfiles

SUFFIXES = {".py"}
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist"}
MAX_FOLDERS = 2000
"""Watched; of a larger tree the deeper ones are not."""
_DEBOUNCE, _STEP, _RUST_TIMEOUT = 200, 30, 1000  # milliseconds


def can_watch() -> bool:
    """Return whether the library is there (extra `embedded`)."""
    try:
        import watchfiles  # noqa: F401
    except ImportError:
        return False
    return True


def changes(root: Path, others: set[Path], ended: threading.Event, since: float) -> Iterator[set[Path]]:
    """Yield the paths that have changed, absolute, as they do, until `ended` is set; first those saved after `since`.

    Watched is code below `root`, `.env` in it, and the files `others`, wherever they are. The bytecode of what has
    changed is gone by then. `since` is in seconds, as files have it.
    """
    others = {path.absolute() for path in others} | {(root / ".env").absolute()}
    known = folders(root)

    def is_watched(change: "watchfiles.Change", name: str) -> bool:
        path = Path(name)
        if path.suffix in SUFFIXES or path in others:
            return True
        is_folder = path in known or (path.is_dir() and _may_hold_code(path.name))
        return is_folder and change.name != "modified"

    while not ended.is_set():
        places = {*known, *(path.parent for path in others)}
        is_first = True
        for told in _told({place for place in places if place.is_dir()}, is_watched, ended):
            begins, is_first = is_first, False
            saved = _saved(places, since) if begins else set()  # before anything was watched
            files = {path for path in told | saved if path.suffix in SUFFIXES or path in others}
            since = time.time()
            if files:
                _forget_bytecode(files)
                yield files
            if told <= files and not begins:
                continue
            now = folders(root)
            if other := (now ^ known) | (now & told):  # another folder: begin again, with it
                known = now
                below = {each for each in now if not other.isdisjoint((each, *each.parents))}
                if files := {path for path in _saved(below, -math.inf) if path.suffix in SUFFIXES}:
                    _forget_bytecode(files)
                    yield files
                break


def _told(
    places: set[Path], is_watched: "Callable[[watchfiles.Change, str], bool]", ended: threading.Event
) -> Iterator[set[Path]]:
    """Yield what changes in folders, or nothing each second, until `ended` is set, or the watch can't go on."""
    import watchfiles
    from watchfiles._rust_notify import WatchfilesRustInternalError

    try:
        for found in watchfiles.watch(
            *places,
            watch_filter=is_watched,
            debounce=_DEBOUNCE,
            step=_STEP,
            stop_event=ended,
            rust_timeout=_RUST_TIMEOUT,
            yield_on_timeout=True,
            recursive=False,
            raise_interrupt=False,
        ):
            yield {Path(path) for _, path in found}
    except (FileNotFoundError, WatchfilesRustInternalError):  # a folder has just gone; a name is no UTF-8
        ended.wait(_STEP / 1000)


def _saved(places: set[Path], since: float) -> set[Path]:
    found = set()
    for place in places:
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # a link to nothing, as Emacs makes while one edits
                    if entry.stat().st_mtime > since:
                        found.add(Path(entry.path))
    return found


def _forget_bytecode(files: set[Path]) -> None:
    """Have Python read `files` anew: it knows a file that has changed by its size and its whole second only."""
    for file in files:
        if file.suffix in SUFFIXES:
            with contextlib.suppress(OSError):
                Path(cache_from_source(file)).unlink()


def folders(root: Path) -> set[Path]:
    """Return the folders that may hold code: `root`, and those below that are nobody else's."""
    found = {root.absolute()}
    for place, names, files in os.walk(root.absolute()):
        if "pyvenv.cfg" in files:
            names.clear()
            found.discard(Path(place))
            continue
        names[:] = sorted(filter(_may_hold_code, names))
        found.add(Path(place))
        if len(found) >= MAX_FOLDERS:
            break
    return found


def _may_hold_code(folder: str) -> bool:
    return folder not in _SKIPPED and not folder.startswith(".") and folder.isprintable()
