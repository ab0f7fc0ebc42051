"""The lines that a handler prints and logs, kept for its attempt: `logging`, stdout and stderr, told apart by context.

A line belongs to the attempt whose context it was written in: that of its slot's thread, of tasks on the event loop,
and of threads that were started with a copy of the context. What subprocesses write is not seen, nor what other threads
write. All of it goes where it would go without this, and nothing more does: no logger's level is changed.

Loggers of the user's packages are heard from the level of `[receiver] run_logs` on, whatever level they have. Others
are heard from the level on that the root logger has at the start: what libraries tell below that may hold keys.

So much is kept of an attempt: its first and its last lines, each up to a length, and so many in a second.
"""

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Final, TextIO

from hookonce.receiver.ledger.results import CALL, LogLine

MAX_LINES = 500
MAX_LINE_LENGTH = 2_000
"""Characters of a line."""
MAX_CHARACTERS = 64_000
"""Of all lines of an attempt."""
MAX_LINES_PER_SECOND = 200
_OURS = "hookonce."
_ONLY_KEPT = "_hookonce_only_kept"
"""Marks a record that its logger's level would not have let through."""
_HEARD = MAX_LINE_LENGTH + 4_000
"""Characters of a line until its attempt has ended: a secret at which it is cut then is masked first, as a whole.

A private key on one line is about 3,300 characters long."""
_HALF = MAX_LINES // 2
_CUT = "…"
# A logger's line that goes to stderr is there already. CPython's `_getframe` tells who writes;
# `test_line_of_a_logger_that_writes_to_stderr_is_kept_once` notices if it does not any more.
_LOGGERS_WRITE: Final = logging.StreamHandler.emit.__code__
_frame = sys._getframe  # noqa: SLF001


class Lines:
    """The lines of one attempt; written to by its handler, and read once when that has ended."""

    __slots__ = ("_began", "_first", "_in_second", "_last", "_left_out", "_pending", "_second")

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._first: list[LogLine] = []
        self._last: deque[LogLine] = deque()
        self._left_out = 0
        self._pending: dict[str, str] = {}
        self._second = self._in_second = 0

    def add(self, level: str, logger: str, text: str) -> None:
        """Add a line, unless there were too many in this second; a full list loses one in its middle."""
        self._add(level, logger, text)

    def add_call(self, text: str, took: float, *, has_failed: bool) -> None:
        """Add a call of another service that has just ended, after so many seconds, as `add` does a line."""
        self._add("error" if has_failed else "", CALL, text, took)

    def _add(self, level: str, logger: str, text: str, took: float | None = None) -> None:
        after = time.perf_counter() - self._began
        if int(after) != self._second:
            self._second, self._in_second = int(after), 0
        self._in_second += 1
        if self._in_second > MAX_LINES_PER_SECOND:
            self._left_out += 1
            return
        line = LogLine(at=int(after * 1000), level=level, logger=logger, text=text[:_HEARD])
        if took is not None:
            line.at, line.took = max(round((after - took) * 1000), 0), round(took * 1000)
        if len(self._first) < _HALF:
            self._first.append(line)
            return
        if len(self._last) == _HALF:
            self._last.popleft()
            self._left_out += 1
        self._last.append(line)

    def write(self, stream: str, text: str) -> None:
        """Add what was written to a stream, line by line; the rest of it waits for its end."""
        if "\n" not in text:
            held = self._pending.get(stream, "")
            if len(held) < _HEARD:
                self._pending[stream] = held + text[:_HEARD]
            return
        first, *others = text.split("\n")
        self.add("", stream, self._pending.pop(stream, "") + first)
        for each in others[:-1]:
            self.add("", stream, each)
        if others[-1]:
            self._pending[stream] = others[-1][:_HEARD]

    def taken(self, cleaned: Callable[[str], str] = str) -> tuple[list[LogLine], int]:
        """Return what is kept, and how many lines are not; those in the middle go where all would be too long.

        `cleaned` makes each line fit to be kept.
        """
        for stream, text in list(self._pending.items()):
            self.add("", stream, text)
        self._pending.clear()
        left, most = self._left_out, MAX_CHARACTERS // 2
        first = _within([_cut(line, cleaned) for line in self._first], most)
        last = _within([_cut(line, cleaned) for line in reversed(self._last)], most)[::-1]
        left += len(self._first) - len(first) + len(self._last) - len(last)
        return [*first, *last], left


_current: ContextVar[Lines | None] = ContextVar("hookonce_lines", default=None)


def begin() -> Lines | None:
    """Have what is written in this context belong to a new attempt; None where nothing is kept."""
    if not Installed.level:
        return None
    lines = Lines()
    _current.set(lines)
    return lines


def note_call(text: str, took: float, *, has_failed: bool) -> None:
    """Keep a call that a handler has made of another service, and how many seconds it took; if lines are kept."""
    if (lines := _current.get()) is not None:
        lines.add_call(text, took, has_failed=has_failed)


def end() -> None:
    """Have what is written in this context belong to no attempt any more."""
    _current.set(None)


def install(level: str, modules: Iterable[str], message_of: Callable[[BaseException], str]) -> None:
    """Keep what handlers of this process write; once, before they are imported.

    `modules`: those of the handlers. Loggers named like their packages are heard from this level on. `message_of` says
    what is kept of an error that is logged, and may raise.
    """
    if level == "off" or Installed.level:
        return
    Installed.level = logging.getLevelNamesMapping()[level.upper()]
    Installed.packages = frozenset(_package(module) for module in modules)
    Installed.message_of = staticmethod(message_of)
    sys.stdout, sys.stderr = _Stream(sys.stdout, "stdout"), _Stream(sys.stderr, "stderr")
    logging.setLoggerClass(_Logger)
    for each in logging.Logger.manager.loggerDict.values():
        if type(each) is logging.Logger and _is_users(each.name):
            each.__class__ = _Logger
    root = logging.getLogger()
    root.addHandler(_Handler(max(Installed.level, root.level)))


class Installed:
    """The capture that this process has installed; nothing is kept while the level is 0."""

    level = 0
    packages: frozenset[str] = frozenset()
    message_of: Callable[[BaseException], str] = repr


class _Logger(logging.Logger):
    """A logger that keeps lines of the user's packages; logging's handlers see those that its level lets through."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802  logging's own
        return super().isEnabledFor(level) or self._is_only_kept(level)

    def makeRecord(self, name: str, level: int, *args: Any, **named: Any) -> logging.LogRecord:  # noqa: N802, ANN401
        record = super().makeRecord(name, level, *args, **named)
        if self._is_only_kept(level):
            record.__dict__[_ONLY_KEPT] = True
        return record

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802
        if record.levelno >= Installed.level and _is_users(self.name):
            _keep(record)
        if _ONLY_KEPT not in record.__dict__:
            super().callHandlers(record)

    def _is_only_kept(self, level: int) -> bool:
        """Whether a line is kept for an attempt that nobody hears otherwise."""
        return (
            level >= Installed.level
            and _current.get() is not None
            and _is_users(self.name)
            and not self.disabled
            and self.manager.disable < level
            and not super().isEnabledFor(level)
        )


class _Handler(logging.Handler):
    """Hears all loggers that do not keep their lines themselves."""

    def handle(self, record: logging.LogRecord) -> bool:
        # Without the lock of `Handler.handle`: a context is one thread's.
        logger = logging.Logger.manager.loggerDict.get(record.name)
        if not (isinstance(logger, _Logger) and _is_users(record.name)):
            _keep(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Write nothing: `handle` has kept it."""


def _keep(record: logging.LogRecord) -> None:
    """Add a record to the lines of the attempt in whose context it was made."""
    lines = _current.get()
    if lines is None or record.name.startswith(_OURS):
        return
    try:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1]:
            text = f"{text} ({Installed.message_of(record.exc_info[1])})"
    except Exception:  # noqa: BLE001  arguments that do not fit, or say nothing of themselves
        text = str(record.msg)
    lines.add(record.levelname.lower(), record.name, text)


def _is_users(name: str) -> bool:
    return _package(name) in Installed.packages


def _package(name: str) -> str:
    return name.partition(".")[0]


class _Stream:
    """A standard stream, which tells the attempt what is written to it."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._write = stream.write

    def write(self, text: str) -> int:
        lines = _current.get()
        if lines is not None and _frame(1).f_code is not _LOGGERS_WRITE:
            lines.write(self._name, text)
        return self._write(text)

    def writelines(self, texts: Any) -> None:  # noqa: ANN401  as io has it
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the stream has
        return getattr(self._stream, name)

    def __iter__(self) -> Any:  # noqa: ANN401
        return iter(self._stream)


def _cut(line: LogLine, cleaned: Callable[[str], str]) -> LogLine:
    text = cleaned(line.text)
    cut = text if len(text) <= MAX_LINE_LENGTH else text[:MAX_LINE_LENGTH] + _CUT
    return line.model_copy(update={"text": cut})


def _within(lines: list[LogLine], most: int) -> list[LogLine]:
    """Return the first lines that are so long together."""
    total = 0
    for number, line in enumerate(lines):
        total += len(line.text)
        if total > most:
            return lines[:number]
    return lines
