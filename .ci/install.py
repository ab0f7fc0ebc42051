"""Installs the packages of a lock file into the environment that runs this, and says on stderr how far it is.

    python .ci/install.py requirements.lock

At a terminal one line is written over; elsewhere every tenth package has a line. What pip says is shown where it fails.
Where CI is set, uv does it in a fifth of the time. It knows nothing of pip's settings, such as an index of one's own:
where it fails, pip is asked.
"""

import os
import re
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

BEGINS = re.compile(r"^\s*(?:Collecting|Requirement already satisfied:) ([\w.-]+)")
UV_LOCK = Path(__file__).with_name("requirements-uv.lock")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-color")
LINES_KEPT = 40


def main(lock: str) -> int:
    """Return pip's exit code."""
    began = time.monotonic()
    if os.environ.get("CI") and is_installed_by_uv(lock):
        say(f"  all packages in {time.monotonic() - began:.0f} s, by uv")
        return 0
    packages = sum(line[:1].isalnum() for line in Path(lock).read_text(encoding="utf-8").splitlines())
    command = [*PIP, "install", "--progress-bar=off", "--require-hashes", "--requirement", lock]
    said: deque[str] = deque(maxlen=LINES_KEPT)
    seen = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        for line in pip.stdout or ():
            said.append(line)
            name = BEGINS.match(line)
            if name and name[1] not in seen:
                seen.add(name[1])
                show(len(seen), packages, name[1])
            elif line.startswith("Installing collected"):
                say("  unpacking" + " " * 40)
    if pip.returncode:
        sys.stderr.write("\n" + "".join(said))
    else:
        say(f"  {len(seen)} packages in {time.monotonic() - began:.0f} s" + " " * 30)
    return pip.returncode


def is_installed_by_uv(lock: str) -> bool:
    """Whether uv could be had, and has installed what the lock file says."""
    has_uv = subprocess.run(
        [*PIP, "install", "--quiet", "--require-hashes", "--requirement", UV_LOCK], check=False
    )
    if has_uv.returncode:
        return False
    install = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-config", "--require-hashes")
    return not subprocess.run(
        [*install, "--python", sys.executable, "--requirement", lock], check=False
    ).returncode


def show(number: int, packages: int, name: str) -> None:
    """Say which package is fetched."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r  {number} of {packages}  {name[:40]:<40}")
        sys.stderr.flush()
    elif number % 10 == 0:
        say(f"  {number} of {packages}")


def say(line: str) -> None:
    """Write a line, over the one that is there."""
    sys.stderr.write(("\r" if sys.stderr.isatty() else "") + line.rstrip() + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
