import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.for_each import for_each
from tests.support.page_commands import clean_environ, free_port, says

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DEADLINE = 60


def blocks():
    """The README's shell blocks, in order: five commands (.ci/try_package.py runs them), then two make targets."""
    return re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def shell(data_directory):
    """Run a block as typed, in a directory of the user's, with the environment's `hookonce` first on the path."""
    environ = clean_environ(Path(sys.executable).parent)

    def run(block):
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=data_directory,
            env=environ,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    run.directory, run.environ = data_directory, environ
    return run


def test_readme_has_the_two_commands_of_a_clone():
    assert [line.split("  ")[0] for line in blocks()[4].splitlines()] == ["make demo", "make test"]


def test_readme_tour_works_as_printed(shell):
    enter, configure, handler, run, send, see, again = blocks()[5:]
    assert enter.splitlines() == ["mkdir -p tour && cd tour"]
    for block in (configure, handler):
        assert shell(block)[0] == 0
    log = shell.directory / "dev.log"
    with log.open("w") as output:
        dev = subprocess.Popen(
            ["bash", "-euc", run.replace("hookonce dev", f"exec hookonce dev --port {free_port()}")],
            cwd=shell.directory,
            env=shell.environ,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        says(log, "ready")

        code, out, err = shell(send)
        answers = [line.rsplit(" ", 2)[0] for line in out.splitlines()]
        assert answers == ["200 accepted", "200 duplicate", "200 duplicate", "401 bad_signature"], out + err
        assert code == 0, err
        says(log, "handlers.credit")
        code, out, err = shell(see)
        assert code == 0, err
        assert "invoice.paid" in out
        assert "bad_signature" in out
        code, out, err = shell(again)
        assert (code, '"cents": 4900' in out, '"body"' in out) == (0, True, True), out + err
    finally:
        dev.send_signal(signal.SIGINT)
        assert dev.wait(DEADLINE) in {0, 130}


@for_each(re.findall(r"\]\((?!https?:)([^)#]+)\)", README))
def test_readme_links_to_what_is_there(link):
    assert (ROOT / link).exists()
