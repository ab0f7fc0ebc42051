"""Follows docs/how-to/production-at-home.md on two real stacks: one takes what a sender sends, the other pulls it."""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.dev.stack import free_port
from tests.support import page_commands
from tests.support.dev_stack import clean, started
from tests.support.program import program
from tests.support.waiting import until

PAGE = page_commands.DOCS / "how-to" / "production-at-home.md"
PYTHON = f"{shlex.quote(sys.executable)} -m hookonce.receiver.cli"


@pytest.fixture
def folders(disk):
    """Two folders that PostgreSQL may run in, whoever it runs as."""
    made = [Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk)) for _ in range(2)]
    for folder in made:
        folder.chmod(0o711)
    yield made
    for folder in made:
        shutil.rmtree(folder)


class Reader:
    """Types the commands of the page, in a folder of its own, with the addresses that are true here."""

    def __init__(self, folder, **addresses):
        self._folder = folder
        self._addresses = {"hookonce ": f"{PYTHON} "} | addresses
        self._environ = clean(XDG_CONFIG_HOME=str(folder), XDG_STATE_HOME=str(folder))

    def command(self, block):
        text = block.text.strip()
        for name, address in self._addresses.items():
            text = text.replace(name, address)
        return text

    def types(self, block, given=""):
        done = subprocess.run(
            ["sh", "-c", self.command(block)],
            cwd=self._folder,
            env=self._environ,
            input=given,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def watches(self, block):
        log = self._folder / "log"
        with log.open("w") as output:
            command = f"exec {self.command(block)}"
            process = subprocess.Popen(
                ["sh", "-c", command], cwd=self._folder, env=self._environ, stdout=output, stderr=output
            )
            try:
                yield lambda text: page_commands.says(log, text, process=process)
            finally:
                process.terminate()
                process.wait(60)

    @property
    def log(self):
        return (self._folder / "log").read_text()


@pytest.mark.long
def test_commands_of_the_page_do_what_it_says(folders):
    create, login, ask, pull, listen = page_commands.blocks(PAGE)
    with started(folders[0]) as production, program() as target:
        secret = production.secret("stripe")
        for number in range(3):
            assert production.post(f"evt_{number}", secret).ok
        token = Reader(folders[0]).types(create).strip()
        reader = Reader(
            folders[1],
            **{
                "https://inbox.example": f"http://127.0.0.1:{production.port}",
                "--at inbox.example": f"--at http://127.0.0.1:{production.port}",
                "evt_1Nxy": "evt_1",
                "http://localhost:3000/hook": target.url,
                "cli dev ": f"cli dev --port {free_port()} ",
            },
        )
        reader.types(login, token)
        assert reader.types(ask).count("evt_1") > 1

        with reader.watches(pull) as says:
            says("3 new, 0 behind")
        with reader.watches(listen) as says:
            says("ready: ")
            assert production.post("evt_9", secret).ok
            says("evt_9")
            until(lambda: len(target.came) == 1)

        (came,) = target.came
        (own,) = re.findall(r"^stripe +secret (\S+)$", reader.log, re.MULTILINE)
        load("stripe").verify(came.delivery, [own], datetime.now(UTC))
        assert own != secret
