"""Stacks of one machine: `hookonce serve` and `hookonce worker`, each with a ledger and a configuration of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import requests

from hookonce.providers.kit.registry import load
from tests.support.ports import free_ports
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SECRET = "whsec_of_both_regions"
HANDLERS = """
from hookonce import on
from sqlalchemy import text

@on("stripe", "*", name="effect")
def effect(event, tx):
    tx.execute(text("INSERT INTO effects VALUES (:event)"), {"event": event.event_id})
"""
CONFIGURATION = """
[receiver]
public_url = "http://127.0.0.1:{port}"
handlers = {handlers}
desk = "off"
[sources.stripe]
secrets = ["env:SECRET"]
{more}
"""


class Stack:
    """A receiver and a worker; `forwards_to` is another stack, in whose name it receives."""

    def __init__(self, directory, database_url, redis_url):
        self.directory = directory
        directory.mkdir()
        self.database_url = database_url
        (self.port,) = free_ports(1)
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HOOKONCE_")},
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "SECRET": SECRET,
            "WEB_CONCURRENCY": "1",
            "HOOKONCE_LOG_LEVEL": "WARNING",
            "PYTHONPATH": str(ROOT),
        }
        self._running = []
        with psycopg.connect(database_url) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS effects (event text)")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hooks/stripe"

    def configure(self, *, forwards_to=None, has_handlers=True):
        more = ""
        if forwards_to is not None:
            more = (
                f'[forwards.home]\nfrom = "stripe"\nto = "{forwards_to.url}"\n'
                'sign = "as sender"\nallow_private = true\n'
            )
        handlers = '["handlers"]' if has_handlers else "[]"
        (self.directory / "handlers.py").write_text(HANDLERS)
        (self.directory / "hookonce.toml").write_text(
            CONFIGURATION.format(port=self.port, handlers=handlers, more=more)
        )

    def start(self, *commands):
        for each in commands or (["serve", "--bind", f"127.0.0.1:{self.port}"], ["worker"]):
            log = (self.directory / f"{each[0]}.log").open("ab")
            with log:
                self._running.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "hookonce.receiver.cli", *each],
                        cwd=self.directory,
                        env=self._environ,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        until(self._answers, seconds=30)
        return self

    def _answers(self):
        try:
            return requests.get(self.url, timeout=5).status_code < 500
        except requests.RequestException:
            return False

    def stop(self):
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._running.clear()

    def deliver(self, body, now, session=requests):
        headers = load("stripe").sign(body, SECRET, now)
        return session.post(self.url, data=body, headers=headers, timeout=30).status_code

    def rows(self, query):
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(query).fetchall()

    def effects(self):
        return [row[0] for row in self.rows("SELECT event FROM effects ORDER BY event")]

    def forwarded(self):
        """Return status and result of the runs of the forward."""
        return self.rows("SELECT status, result FROM hookonce.runs WHERE handler = 'forwards.home'")
