"""Tries a wheel or an sdist as a user would: an empty environment, an empty folder, one delivery through a handler.

python .ci/try_package.py dist/hookonce-*.whl
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

HANDLERS = """
from hookonce import on

@on("stripe", "invoice.paid")
def credit(event, tx):
    return {"credited": event.data["id"]}
"""
SECONDS = 90


def main(package: Path) -> None:
    """Install, start the stack, send one signed delivery, and wait until its handler has run."""
    with tempfile.TemporaryDirectory(prefix="hookonce-package-") as directory:
        place = Path(directory)
        place.chmod(0o755)  # the embedded PostgreSQL is another user's, if we are root
        venv.create(place / "environment", with_pip=True)
        programs = place / "environment" / "bin"
        pip = [programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, f"{package.resolve()}[embedded]"], check=True)
        folder = place / "application"
        folder.mkdir()
        (folder / "handlers.py").write_text(HANDLERS)
        environ = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": directory,
            "HOOKONCE_HANDLERS": "handlers",
        }
        log = (place / "dev.log").open("w")
        dev = subprocess.Popen(
            ["hookonce", "dev", "--port", str(free_port())],
            cwd=folder,
            env=environ,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            deliver(folder, environ)
        except BaseException:
            sys.stderr.write((place / "dev.log").read_text())
            raise
        finally:
            dev.send_signal(signal.SIGINT)
            dev.wait(30)
    print(f"{package.name}: one delivery went through a handler, in an environment of its own")


def deliver(folder: Path, environ: dict[str, str]) -> None:
    """Trigger until the receiver is up, then wait for the run. Raises: TimeoutError."""
    until = time.monotonic() + SECONDS
    sent = False
    while time.monotonic() < until:
        if not sent:
            sent = hookonce(folder, environ, "trigger", "stripe", "invoice.paid") is not None
        listed = hookonce(folder, environ, "events", "list", "--json") or ""
        if any(json.loads(line)["status"] == "done" for line in listed.splitlines()):
            return
        time.sleep(0.5)
    raise TimeoutError(f"no event was handled within {SECONDS} s")


def free_port() -> int:
    """A port of the loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def hookonce(folder: Path, environ: dict[str, str], *words: str) -> str | None:
    """What a command prints, or None if it fails."""
    done = subprocess.run(
        ["hookonce", *words], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(Path(name))
