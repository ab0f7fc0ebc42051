"""The commands of docs/: found on the pages, and run as a reader would type them.

A comment right above a block says what the block alone can't:

    <!-- not run: WHY -->            it can't be run here
    <!-- in the background: TEXT --> it stays up; TEXT in its output says that it is ready. Ends the one before
    <!-- beside: TEXT -->            the same, but what is in the background stays there
    <!-- exits: CODE -->             it should fail, with this code
    <!-- shows: TEXT -->             this is in its output
    <!-- after: TEXT -->             what is in the background has said this since it was started
    <!-- writes: NAME -->            it is no command, but a file of this name
"""

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.support.waiting import DeadlineMissed, until

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUNS = ROOT / ".pytest_cache" / "pages"
SHELLS = ("sh", "bash", "console")
DEADLINE = 60
FENCE = re.compile(
    rf"(?P<said>(?:^<!--.*-->\n)*)^```(?:{'|'.join(SHELLS)})\b.*\n(?P<text>(?s:.*?))^```$", re.MULTILINE
)
FILE = re.compile(r"^<!-- writes: (?P<name>\S+) -->\n```\w+\n(?P<text>(?s:.*?))^```$", re.MULTILINE)
SAID = re.compile(r"<!-- (not run|in the background|beside|exits|shows|after): (.*?) -->")
PROMPT = re.compile(r"^\$ ", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Commands that stand together on a page, and what is said about them."""

    page: str
    text: str
    said: dict[str, str]

    @property
    def is_run(self):
        return "not run" not in self.said


def blocks(path):
    """The shell blocks of a page, in order."""
    found = FENCE.finditer(path.read_text(encoding="utf-8"))
    page = path.relative_to(ROOT).as_posix()
    return [Block(page, PROMPT.sub("", each["text"]), dict(SAID.findall(each["said"]))) for each in found]


def steps(path):
    """The files of a page, as pairs of name and text, and its shell blocks, in the order of the page."""
    text = path.read_text(encoding="utf-8")
    files = [(found.start(), (found["name"], found["text"])) for found in FILE.finditer(text)]
    commands = [found.start() for found in FENCE.finditer(text)]
    placed = [*files, *zip(commands, blocks(path), strict=True)]
    return [step for _, step in sorted(placed, key=lambda each: each[0])]


def note_run(page):
    """Leave for `make docs` when a page's commands did last what the page says, and with what (page_stamps.py)."""
    RUNS.mkdir(parents=True, exist_ok=True)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    (RUNS / page.replace("/", "-")).write_text(
        f"{datetime.now(UTC).date().isoformat()} with hookonce {version('hookonce')} and Python {python}"
    )


def says(log, text, *, process=None):
    """Wait until a log has a text in it."""
    try:
        until(lambda: text in log.read_text(), seconds=DEADLINE, what=text, process=process)
    except (AssertionError, DeadlineMissed) as error:
        error.add_note(log.read_text())
        raise


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Terminal:
    """Runs blocks one after the other; directory and exported variables stay, as in a terminal."""

    def __init__(self, directory, environ):
        self._directory, self._environ = Path(directory), dict(environ)
        self._state = self._directory / ".terminal"
        self._behind, self._log = None, self._directory / ".background.log"
        self._beside = []
        self.port, self.second_port = free_port(), free_port()

    def follow(self, page):
        """Write its files and run its commands, but for those that can't be run."""
        for step in steps(page):
            if isinstance(step, tuple):
                (self._cwd() / step[0]).write_text(step[1])
            elif step.is_run:
                self.run(step)

    def run(self, block):
        """Run it, and fail unless it does what is said."""
        if "in the background" in block.said:
            self._start(block)
            return
        if "beside" in block.said:
            self._start_beside(block)
            return
        if "after" in block.said:
            self._wait_for(block.said["after"])
        code, output = self._finish(self._popen(block, subprocess.PIPE))
        assert str(code) == block.said.get("exits", "0"), f"{block.page}\n{block.text}\n{output}"
        assert block.said.get("shows", "") in output, f"{block.page}\n{block.text}\n{output}"
        note_run(block.page)

    def stop(self):
        """End what is in the background as Ctrl-C does."""
        for process in self._beside:
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE)
        self._beside.clear()
        if self._behind is not None:
            os.killpg(self._behind.pid, signal.SIGINT)
            code = self._behind.wait(DEADLINE)
            self._behind = None
            assert code in {0, 130}, code

    def _start(self, block):
        self.stop()
        with self._log.open("w") as output:
            self._behind = self._popen(block, output)
        self._wait_for(block.said["in the background"])

    def _start_beside(self, block):
        log = self._directory / f".beside{len(self._beside)}.log"
        with log.open("w") as output:
            self._beside.append(self._popen(block, output))
        self._wait_for(block.said["beside"], log, self._beside[-1])

    def _wait_for(self, text, log=None, process=None):
        says(log or self._log, text, process=process or self._behind)

    def _cwd(self):
        kept = Path(f"{self._state}.cwd")
        return Path(kept.read_text().splitlines()[-1]) if kept.exists() else self._directory

    def _popen(self, block, output):
        text = re.sub(r"(:|PORT=)8000", rf"\g<1>{self.port}", block.text)
        text = re.sub(r"\b8001\b", str(self.second_port), text)
        text = re.sub(r"^hookonce dev\b(?! --port)", rf"\g<0> --port {self.port}", text, flags=re.MULTILINE)
        text = re.sub(r"^(?=gunicorn |uvicorn |hookonce dev\b)", "exec ", text, flags=re.MULTILINE)
        keep = (
            ""
            if block.said.keys() & {"in the background", "beside"}
            else f"\nexport -p > {self._state}; pwd >> {self._state}.cwd"
        )
        known = f"[ -e {self._state} ] && . {self._state}; " if self._state.exists() else ""
        return subprocess.Popen(
            ["bash", "-euc", f"{known}{text}{keep}"],
            cwd=self._cwd(),
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @staticmethod
    def _finish(process):
        with process:
            try:
                output, _ = process.communicate(timeout=DEADLINE)
            except subprocess.TimeoutExpired as late:
                os.killpg(process.pid, signal.SIGKILL)
                return "too late", (late.output or b"").decode()
        return process.returncode, output


def clean_environ(*first):
    """The environment without anything of ours, the given directories first on the PATH."""
    names = ("DATABASE_URL", "REDIS_URL", "PORT", "WEB_CONCURRENCY", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HOOKONCE_") and k not in names}
    desk = {"HOOKONCE_DESK": f"127.0.0.1:{free_port()}"}  # that several may run at once
    return {**kept, **desk, "PATH": ":".join([*map(str, first), kept["PATH"]]), "COLUMNS": "120"}
