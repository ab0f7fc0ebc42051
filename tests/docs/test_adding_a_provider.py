import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.page_commands import clean_environ, free_port, note_run
from tests.support.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-provider.md"
DEADLINE = 60


def blocks():
    """The page's shell blocks, in order, of the walk from a delivery to a passing test."""
    return re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def shell(tmp_path):
    """Run a block as printed, but for the port, in a directory of one's own."""
    environ, port = clean_environ(Path(sys.executable).parent), free_port()
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they would take most of the time

    def start(block):
        block = re.sub(r"hookonce capture (\w+)", rf"hookonce capture \1 --port {port}", block)
        command = ["bash", "-euc", block.replace(":8000", f":{port}")]
        return subprocess.Popen(
            command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(block):
        process = start(block)
        said, _ = process.communicate(timeout=DEADLINE)
        return process.returncode, said

    run.start, run.port, run.directory = start, port, tmp_path
    return run


def wait_for(port):
    until(
        lambda: socket.create_connection(("127.0.0.1", port)),
        seconds=DEADLINE,
        away=ConnectionRefusedError,
    ).close()


def catch(shell, capture, send, name):
    """Run the two blocks that catch a delivery, and return what the first one says."""
    listening = shell.start(capture)
    try:
        wait_for(shell.port)
        assert shell(send) == (0, '{"status": "captured"}\n')
        said = listening.communicate(timeout=DEADLINE)[0]
    finally:
        if listening.poll() is None:
            listening.send_signal(signal.SIGINT)
            listening.wait(DEADLINE)
    assert f"in {name}.http" in said
    return said


def test_page_leads_from_a_delivery_to_a_passing_test(shell):
    capture, send, make, test, finish, use = blocks()[:6]

    catch(shell, capture, send, "close")
    code, said = shell(make)

    assert code == 0, said
    assert said in PAGE.read_text()
    for block in (test, finish):
        code, said = shell(block)
        assert code == 0, said
        assert re.search(r"^=* ?14 passed", said, re.MULTILINE), said
    code, said = shell(use)
    assert (code, "/hooks/close" in said) == (0, True), said


@pytest.mark.parametrize(("name", "first"), [("orbital", 6), ("rover", 11)])
def test_page_leads_from_a_key_pair_to_a_passing_test(shell, name, first):
    capture, send, make, test, use = blocks()[first : first + 5]

    shown = catch(shell, capture, send, name).partition("\n")[2]
    code, said = shell(make)

    assert code == 0, said
    assert [said in PAGE.read_text(), shown in PAGE.read_text()] == [True, True], (shown, said)
    code, said = shell(test)
    assert (code, bool(re.search(r"^=* ?28 passed", said, re.MULTILINE))) == (0, True), said
    code, said = shell(use)
    assert (code, f"/hooks/{name}" in said) == (0, True), said


def test_page_has_no_other_blocks():
    assert len(blocks()) == 16
    note_run("docs/adding-a-provider.md")
