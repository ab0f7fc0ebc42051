"""Commands as they are served: gunicorn with our worker class, and a worker of its own, in processes of their own."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.ports import free_ports
from tests.support.waiting import until

CONFIG = """
[commands.payments]
handler = "shop:pay"
auth = { shop = ["env:SHOP"] }
in_progress = "wait 20s"
"""
SHOP = """
from sqlalchemy import text

def pay(event, tx):
    tx.execute(text("SELECT pg_sleep(0.2)"))
    return {"paid": event.data["amount"], "event": event.id}
"""
TOKEN = "token-of-the-shop-1"
DEADLINE = 60


@pytest.fixture
def url(database_url, redis_url, tmp_path):
    (tmp_path / "hookonce.toml").write_text(CONFIG)
    (tmp_path / "shop.py").write_text(SHOP)
    [port] = free_ports(1)
    environ = os.environ | {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "SHOP": TOKEN}
    environ["HOOKONCE_DESK"] = "off"
    program = [sys.executable, "-m", "hookonce.receiver.cli"]
    commands = [[*program, "serve", "--bind", f"127.0.0.1:{port}"], [*program, "worker"]]
    with contextlib.ExitStack() as processes:
        started = []
        for command in commands:
            log = processes.enter_context((tmp_path / f"{command[3]}.log").open("wb"))
            started.append(
                processes.enter_context(subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=log))
            )
        try:
            until(
                lambda: is_ready(port), process=started[0], away=requests.RequestException, seconds=DEADLINE
            )
            yield f"http://127.0.0.1:{port}/commands/payments"
        finally:
            for each in started:
                each.send_signal(signal.SIGTERM)
            for each in started:
                each.wait(DEADLINE)


def is_ready(port):
    return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).ok


def test_twenty_at_once_are_answered_alike_by_real_servers(url):
    barrier = threading.Barrier(20)
    headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "one"}

    def ask(_):
        barrier.wait(DEADLINE)
        return requests.post(url, json={"amount": 5}, headers=headers, timeout=DEADLINE)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(20)))

    assert {(answer.status_code, answer.content) for answer in answers} == {(200, answers[0].content)}
    assert answers[0].json()["paid"] == 5
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
