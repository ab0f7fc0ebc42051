"""What operators and the sweep do to what is stored, while everything is killed: bodies are sealed and redacted on
their way in, keys rotate to and fro, and what has outlived its horizon is pruned. These commands are killed too.
"""

import os
import subprocess
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256

import psycopg

from hookonce.receiver.encryption import Keyring, body_context
from hookonce.receiver.ledger.maintenance import key_rotation, partitions
from tests.soak import clients
from tests.support.stories.plans import CONFIGURATION
from tests.support.stories.sending import stripe

CARD = "4242424242424242"
"""Never stored: what is at `$.story.card` is redacted."""
KEYS = tuple(os.urandom(32) for _ in range(2))
KEYRING = Keyring(KEYS)
PAUSE = (0.2, 0.8)
KILLED_SHARE, KILLED_AFTER = 0.5, (0.5, 2.5)
"""How many commands are killed after how many seconds; starting takes half a second, and more if all are busy."""
PATIENCE = 600
"""Seconds for a command that is not killed: the longer a soak, the more there is to seal again, beside all the rest."""
PARTIAL = 3
"""Exit status of `prune` where a day was in use, and will be tried again."""
AGES = {
    "forgotten": (timedelta(days=120), "done"),
    "without_body": (timedelta(days=60), "done"),
    "held": (timedelta(days=121), "held"),
}
KEPT = {"forgotten": (0, 0), "without_body": (1, 0), "held": (1, 1)}
"""Of each age the share of rows and bodies that are there in the end."""
EVENT = """
INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed, received_at)
VALUES (%s, 'stripe', %s, 'old', %s, true, %s) RETURNING id, received_at
"""
WHAT_CAME_OF_IT = {
    "done": """
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
SELECT id, 'credit', 1, 'done', 1, received_at FROM hookonce.events WHERE id = %s
""",
    "held": """
INSERT INTO hookonce.queue (event, received_at, source, type, due_at, waits)
SELECT id, received_at, source, type, received_at, 'held' FROM hookonce.events WHERE id = %s
""",
}
BODY = """
INSERT INTO hookonce.bodies (event, received_at, url, headers, body, is_element, key_id)
VALUES (%s, %s, '/', '{}', %s, false, %s)
"""
FOUND = """
SELECT count(e.id), count(b.event) FROM hookonce.events e LEFT JOIN hookonce.bodies b ON b.event = e.id
WHERE e.source = %s
"""


def configuration(*, second_first=False):
    """The stories' configuration, with sealing, redaction and short horizons."""
    keys = ["env:SOAK_KEY_1", "env:SOAK_KEY_2"]
    if second_first:
        keys.reverse()
    receiver = f'[receiver]\nencryption_keys = {keys}\nkeep_rejected = "2s"'
    stripe_source = '[sources.stripe]\nredact = ["$.story.card"]'
    told = CONFIGURATION.replace("[receiver]", receiver).replace("[sources.stripe]", stripe_source)
    assert (receiver in told, stripe_source in told) == (True, True)
    return told + clients.CONFIGURATION


def environ():
    keys = {f"SOAK_KEY_{number}": key.hex() for number, key in enumerate(KEYS, 1)}
    return keys | {"SOAK_TOKEN": clients.TOKEN}


def as_stored(delivery):
    """A delivery as the ledger may keep it."""
    events = [
        each._replace(raw=each.raw.replace(f'"card":"{CARD}"'.encode(), b'"card":"[redacted]"'))
        for each in delivery.events
    ]
    return replace(delivery, events=events)


def grow_old(stack, count):
    """Put so many events of each age into the ledger, before any other."""
    with psycopg.connect(stack.database_url, autocommit=True) as sql:
        for name, (age, status) in sorted(AGES.items(), key=lambda each: each[1], reverse=True):
            at = datetime.now(UTC) - age
            partitions.make_partition(sql, date(at.year, at.month, at.day))
            with sql.transaction():
                for number in range(count):
                    _put(sql, name, f"evt_{number}", status, at)


def _put(sql, source, event_id, status, at):
    body = f'{{"id": "{event_id}"}}'.encode()
    mark = sha256(body).digest()
    row = sql.execute(EVENT, [source, event_id, mark, at]).fetchone()
    sql.execute(WHAT_CAME_OF_IT[status], [row[0]])
    sql.execute(BODY, [*row, *KEYRING.encrypt(body, body_context(source, event_id, mark))])


FORGET = (
    "DELETE FROM hookonce.queue WHERE event IN (SELECT id FROM hookonce.events WHERE source = ANY(%s))",
    "DELETE FROM hookonce.runs WHERE event IN (SELECT id FROM hookonce.events WHERE source = ANY(%s))",
    "DELETE FROM hookonce.events WHERE source = ANY(%s)",
)


class Housekeeper:
    """Runs one command after the other in a thread of its own, from `start` to `stop`, and kills some.

    `may_fail`: servers crash beside it, so others may fail.
    """

    def __init__(self, stack, random, old, *, may_fail=False):
        self._may_fail = may_fail
        self._stack = stack
        self._old = old
        self._random = random
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._work_on)
        self._other = stack.directory / "rotated.toml"
        self._other.write_text(configuration(second_first=True))
        self.ended = {"rotate": 0, "prune": 0}
        self.killed = 0
        self.failed = 0
        self.mistakes = []

    def start(self):
        self._thread.start()

    def stop(self):
        self._enough.set()
        self._thread.join()

    def finish(self):
        """Let both commands do all there is to do, and say what they should have done and have not."""
        self._run("prune")
        self._run("keys", "rotate", HOOKONCE_CONFIG=str(self._other))
        with psycopg.connect(self._stack.database_url, autocommit=True) as sql:
            for name, shares in KEPT.items():
                expected = tuple(self._old * share for share in shares)
                if (found := sql.execute(FOUND, [name]).fetchone()) != expected:
                    self.mistakes.append(f"old events, {name}: {found} rows and bodies, expected {expected}")
            keys = {
                key for counts in key_rotation.used(sql).values() for key, count in counts.items() if count
            }
            if keys != {KEYRING.ids[1]}:
                self.mistakes.append(f"rows are under the keys {keys} after a rotation")

    def forget(self):
        """Take out what was put in, and the commands: no sender has sent it."""
        with psycopg.connect(self._stack.database_url, autocommit=True) as sql:
            for forget in FORGET:
                sql.execute(forget, [[*AGES, clients.SOURCE]])

    def _work_on(self):
        number = 0
        while not self._enough.wait(self._random.uniform(*PAUSE)):
            number += 1
            self._stack.deliver(stripe(f"evt_forged_{number}", card=CARD).forged())
            if self._random.random() < 1 / 3:
                self._run("prune", may_die=True)
            else:
                config = self._random.choice([self._other, self._stack.directory / "hookonce.toml"])
                self._run("keys", "rotate", may_die=True, HOOKONCE_CONFIG=str(config))

    def _run(self, *command, may_die=False, **environ):
        process = self._stack.run("housekeeping", *command, **environ)
        if may_die and self._random.random() < KILLED_SHARE:
            self._enough.wait(self._random.uniform(*KILLED_AFTER))
            if process.poll() is None:
                process.kill()
                process.wait()
                self.killed += 1
                return
        if self._end(process) not in {0, PARTIAL}:
            if may_die and self._may_fail:
                self.failed += 1
                return
            self.mistakes.append(f"{' '.join(command)} ended with {process.returncode}: see housekeeping.log")
        self.ended[command[-1]] += 1

    def _end(self, process):
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
