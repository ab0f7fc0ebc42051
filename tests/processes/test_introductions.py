"""What `hookonce serve` and `worker` say when they start and when Ctrl-C ends them."""

import os
import signal
import socket
import subprocess
import sys

import pytest
import requests

from tests.support.ports import free_ports
from tests.support.waiting import until

CONFIG = """
[receiver]
handlers = ["shop"]
[sources.stripe]
provider = "stripe"
secrets = ["env:STRIPE_SECRET"]
[sources.github]
provider = "github"
secrets = ["env:STRIPE_SECRET"]
"""
SHOP = """
import hookonce

@hookonce.on("stripe", "invoice.*", name="credit")
def credit(event, tx):
    pass

print("shop is imported by", __import__("os").getpid(), file=__import__("sys").stderr)
"""
PROGRAM = [sys.executable, "-m", "hookonce.receiver.cli"]


@pytest.fixture
def inbox(database_url, redis_url, tmp_path):
    (tmp_path / "hookonce.toml").write_text(CONFIG)
    (tmp_path / "shop.py").write_text(SHOP)
    environ = {name: value for name, value in os.environ.items() if name not in {"WEB_CONCURRENCY", "PORT"}}
    servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "STRIPE_SECRET": "whsec_of_the_tests"}
    return {"cwd": tmp_path, "env": environ | servers}


def said_until_interrupted(inbox, *command, sign):
    """Run a command until the sign of its work is in its output, press Ctrl-C, and return its status and output."""
    log = inbox["cwd"] / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*PROGRAM, *command], **inbox, stdout=stderr, stderr=stderr, start_new_session=True
        ) as process,
    ):
        try:
            until(lambda: sign(log.read_text()), process=process, seconds=60)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
            status = process.wait(60)
        finally:
            process.kill()
    return status, log.read_text()


def answers(port):
    try:
        return requests.get(f"http://127.0.0.1:{port}/livez", timeout=10).ok
    except requests.RequestException:
        return False


def test_serve_says_in_one_block_what_it_is_and_ends_quietly(inbox):
    [port] = free_ports(1)
    inbox["env"]["WEB_CONCURRENCY"] = "1"  # so that no other is still beginning when it answers

    status, said = said_until_interrupted(
        inbox, "serve", "--bind", f"127.0.0.1:{port}", "--desk", "off", sign=lambda _: answers(port)
    )

    head, *parts = said.splitlines()
    assert head.startswith("hookonce ")
    assert head.endswith(" serve: receives webhooks until Ctrl-C")
    assert f"  listens    127.0.0.1:{port}" in parts
    assert "  desk       off" in parts
    assert "  processes  1, as WEB_CONCURRENCY says" in parts
    assert "  sources    2: github, stripe" in parts
    assert [each for each in parts if each.startswith("  handlers   no worker has registered yet")]
    assert len(parts) <= 8
    assert max(map(len, parts)) < 80
    assert status == 0


def test_worker_says_its_handlers_and_ends_quietly_on_ctrl_c(inbox):
    status, said = said_until_interrupted(
        inbox, "worker", sign=lambda said: said.count("shop is imported") > 1
    )

    lines = [each for each in said.splitlines() if "shop is imported" not in each]
    assert lines[0].endswith(" worker: runs handlers until Ctrl-C")
    assert "  handlers      1: credit" in lines
    assert "  sources       2: github, stripe" in lines
    assert len(lines) <= 8
    assert max(map(len, lines)) < 80
    assert status == 0


def test_port_that_is_taken_is_one_line(inbox):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        ended = subprocess.run(
            [*PROGRAM, "serve", "-b", f"127.0.0.1:{port}"],
            **inbox,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert ended.returncode == 1
    assert ended.stderr == (
        f"hookonce: port {port} is taken at 127.0.0.1 by another process; end that one, or listen elsewhere with "
        "--port or --bind HOST:PORT\n"
    )
