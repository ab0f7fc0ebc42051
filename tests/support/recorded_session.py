"""docs/pictures/session.svg: a first session at a terminal, recorded from the real commands.

`python -m tests.support.recorded_session` writes it anew. What differs from one session to the next (ids, times, ports)
is replaced by values that look alike, so that the same commands make the same picture.
"""

import fcntl
import itertools
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape
from pathlib import Path

from rich.style import Style
from rich.text import Text

from tests.support.page_commands import clean_environ, free_port, says

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "session.svg"
COLUMNS, LINES = 80, 60
DEADLINE = 60
COMMANDS = (
    "hookonce init stripe",
    "hookonce trigger stripe invoice.paid --times 3",
    "hookonce trigger stripe invoice.paid --forge",
    "hookonce events list",
)
AWAITED = {COMMANDS[1]: "  done  ", COMMANDS[2]: "  rejected  "}
"""What `hookonce dev` says when it has done what was sent."""
IDS = ("evt_1SpSampleB7kQ2mXj3Uf4Wt", "evt_1SpForgedR4vN8hLm6Tz2Yk")
ALIKE = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:8000"),
    (re.compile(r"\b\d+(?:\.\d+)? ?ms\b"), "7 ms"),
    (re.compile(r"\b\d{1,2}s ago"), "2s ago"),
    (re.compile(r"(?<=  )now   (?=  )"), "2s ago"),
    (re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ?"), "2026-01-31 14:00:00"),
)
INKS = {"red": "#f7768e", "green": "#9ece6a", "yellow": "#e0af68", "cyan": "#7dcfff", "blue": "#7aa2f7"}
ANSI = {1: "red", 2: "green", 3: "yellow", 4: "blue", 6: "cyan"}
PAPER, INK, FAINT = "#1a1b26", "#c0caf5", "#737aa2"
WIDTH, HEIGHT, LEFT, TOP = 8.43, 19, 18, 52
"""Of a character and of a line, and where the text begins, in pixels."""


def record() -> str:
    """Run the commands beside a `hookonce dev` in an empty directory; return the picture."""
    with tempfile.TemporaryDirectory(prefix="hookonce-session-") as place:
        Path(place).chmod(0o711)  # PostgreSQL runs as another user if we are root
        port = str(free_port())
        environ = clean_environ(Path(sys.executable).parent) | {
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
        }
        transcript = [typed(COMMANDS[0]), *_output(COMMANDS[0], place, environ)]
        with (
            (Path(place) / "dev.log").open("w") as log,
            subprocess.Popen(
                ["hookonce", "dev", "--port", port], cwd=place, env=environ, stdout=log, stderr=log
            ) as dev,
        ):
            try:
                says(Path(place) / "dev.log", "ready: ", process=dev)
                transcript += [
                    Text(""),
                    typed("hookonce dev"),
                    Text("  stays up; in another terminal:", style="dim"),
                ]
                for command in COMMANDS[1:]:
                    transcript += [Text(""), typed(command), *_output(command, place, environ)]
                    if command in AWAITED:
                        says(Path(place) / "dev.log", AWAITED[command], process=dev)
            finally:
                dev.send_signal(signal.SIGINT)
                dev.wait(DEADLINE)
    return svg(alike(transcript))


def typed(command: str) -> Text:
    """Return a command behind its prompt."""
    return Text.assemble(("$ ", "green"), (command, "bold"))


def _output(command: str, place: str, environ: dict[str, str]) -> list[Text]:
    """Run a command at a terminal; return its lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    with subprocess.Popen(
        command.split(), cwd=place, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    ) as child:
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
        os.close(ours)
        child.wait(DEADLINE)
    lines = said.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    return [Text.from_ansi(line) for line in lines]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so where nobody writes any more
        return b""


def alike(transcript: list[Text]) -> list[Text]:
    """Return the lines with what differs between sessions replaced; a column keeps its width."""
    known: dict[str, str] = {}

    def same(found: re.Match[str]) -> str:
        return known.setdefault(found[0], (*IDS, *IDS)[len(known)][: len(found[0])])

    changed = []
    for line in transcript:
        plain = re.sub(r"evt_\w{20,28}", same, line.plain)
        for pattern, instead in ALIKE:
            plain = pattern.sub(instead, plain)
        copy = Text(plain)
        for span in line.spans:
            word = line.plain[span.start : span.end]
            at = plain.find(word)
            if at >= 0:
                copy.stylize(span.style, at, at + len(word))
        changed.append(copy)
    return changed


def svg(lines: list[Text]) -> str:
    """Draw the lines in a window."""
    width, height = COLUMNS * WIDTH + 2 * LEFT, len(lines) * HEIGHT + TOP + 12
    rows = [
        f'<text y="{TOP + number * HEIGHT}" xml:space="preserve">{_spans(line)}</text>'
        for number, line in enumerate(lines)
        if line.plain.strip()
    ]
    dots = "".join(
        f'<circle cx="{24 + 20 * n}" cy="20" r="6" fill="{ink}"/>'
        for n, ink in enumerate((INKS["red"], INKS["yellow"], INKS["green"]))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
        "<title>A first session with hookonce: init, dev, trigger, events list</title>\n"
        f"<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{INK}}}"
        f".bold{{font-weight:bold}}.dim{{fill:{FAINT}}}"
        + "".join(f".{name}{{fill:{ink}}}" for name, ink in INKS.items())
        + "</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>\n{dots}\n' + "\n".join(rows) + "\n</svg>\n"
    )


def _spans(line: Text) -> str:
    """Return one line in pieces, each placed at its column, so that any monospaced font will do."""
    edges = sorted({0, len(line.plain), *(edge for span in line.spans for edge in (span.start, span.end))})
    pieces = []
    for start, end in itertools.pairwise(edges):
        styles = [span.style for span in line.spans if span.start <= start and span.end >= end]
        pieces.append(
            f'<tspan x="{LEFT + start * WIDTH:.1f}" textLength="{(end - start) * WIDTH:.1f}"'
            f"{_class(styles)}>{escape(line.plain[start:end])}</tspan>"
        )
    return "".join(pieces)


def _class(styles: list[str | Style]) -> str:
    names = []
    for style in (Style.parse(each) if isinstance(each, str) else each for each in styles):
        names += ["bold"] * bool(style.bold) + ["dim"] * bool(style.dim)
        if style.color and style.color.number in ANSI:
            names.append(ANSI[style.color.number])
    return f' class="{" ".join(names)}"' if names else ""


if __name__ == "__main__":
    PICTURE.write_text(record(), encoding="utf-8")
