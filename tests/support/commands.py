"""A shop that takes commands: the receiver in this process, and its worker, which works when it is told to."""

import json
import sys
import types
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from hookonce import GiveUp, Refusal
from hookonce.jobs import drain, handlers
from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.handlers import register_handlers
from tests.support.waiting import until

TOKENS = {"SHOP": "token-of-the-shop-1", "SHOP_NEW": "token-of-the-shop-2", "TILL": "token-of-the-till-1"}
AUTH = 'auth = { shop = ["env:SHOP", "env:SHOP_NEW"], till = ["env:TILL"] }'
CONFIG = f"""
[commands.payments]
handler = "shop_of_tests:pay"
{AUTH}
%s

[commands.refunds]
handler = "shop_of_tests:pay"
{AUTH}
in_progress = "202"

[commands.orders]
handler = "shop_of_tests:pay"
{AUTH}
in_progress = "202"
tenant = "Tenant"
actor = "Actor"
headers = ["Currency"]
"""
DEADLINE = 30
AT_ONCE = 'in_progress = "202"'
"""An answer that a test need not wait for; the tests of the default take it out."""


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def is_replayed(self):
        return self.headers.get("Idempotency-Replayed") == "true"


def pay(event, tx):
    """Pay, and end as the body says."""
    tx.execute(text("INSERT INTO public.payments VALUES (:key)"), {"key": event.idempotency_key})
    then = event.data.get("then")
    if then == "give up":
        raise GiveUp("the card is gone")
    if then == "fail":
        raise ArithmeticError("no change")
    if then == "fail once" and event.attempt == 1:
        raise ArithmeticError("no change, yet")
    if then == "step":
        charge = event.step("charge", lambda key: {"key": key, "attempt": event.attempt})
        if event.attempt == 1:
            raise ArithmeticError("no change, yet")
        return charge
    if then == "refuse":
        raise Refusal(402, "declined", "the bank says no")
    if "version" in event.data:
        event.expect(event.data["version"])
    if then == "late":
        event.not_after(timedelta(0))
    return {"paid": event.data["amount"], "attempt": event.attempt}


class Shop:
    """The whole application over a ledger of the test's own."""

    def __init__(self, database_url, redis_url, directory, options="", *, config="", **changes):
        path = directory / "hookonce.toml"
        sealing = '[receiver]\nencryption_keys = ["env:BODY_KEY"]\n' if "BODY_KEY" in changes else ""
        is_said = "in_progress" in options or "dialect" in options
        path.write_text(config or sealing + CONFIG % (options if is_said else f"{options}\n{AT_ONCE}"))
        sys.modules["shop_of_tests"] = types.ModuleType("shop_of_tests")
        sys.modules["shop_of_tests"].pay = pay
        environ = {"HOOKONCE_CONFIG": str(path), "DATABASE_URL": database_url, "REDIS_URL": redis_url}
        self.settings = load_settings(environ | TOKENS | changes)
        self.app = create_app(self.settings)
        self.ledger = connections.connect(database_url)
        self.ledger.execute("CREATE TABLE IF NOT EXISTS public.payments (key text)")
        self._registry, handlers.registry = handlers.registry, Registry()
        self._drain = SingleSlot(self.settings, drain.handlers_of(self.settings))

    def ask(self, body, key="one", *, path="payments", client="SHOP", method="POST", **headers):
        sent = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        if client:
            sent["Authorization"] = f"Bearer {TOKENS.get(client, client)}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, str | bytes | None) else json.dumps(body)
        path = path if path.startswith("/") else f"/commands/{path}"
        response = self.app.test_client(use_cookies=False).open(path, method=method, headers=sent, data=data)
        return Answer(response.status_code, response.headers, response.data)

    def look(self, location, client="SHOP"):
        return self.ask(None, None, path=location, client=client, method="GET")

    def announce(self):
        """Say which handlers there are, as a worker does at its start."""
        registry = drain.handlers_of(self.settings)
        register_handlers(self.ledger, registry.rows(), registry.declarations())

    def work(self):
        """Do what is due, once."""
        self.ledger.execute("UPDATE hookonce.queue SET due_at = now() WHERE handler IS NOT NULL")
        return self._drain.run_due()

    def work_once(self):
        """Do what is due now: what fails is due later."""
        return self._drain.run_due()

    def meanwhile(self, *questions):
        """Ask in threads of their own, working here until all are answered."""
        with ThreadPoolExecutor(len(questions)) as pool:
            futures = [pool.submit(question) for question in questions]

            def unanswered():
                self._drain.run_due()
                return wait(futures, timeout=0.02).not_done

            until(unanswered, set())
            return [future.result() for future in futures]

    def rows(self, query):
        return self.ledger.execute(query).fetchall()

    @property
    def payments(self):
        return [key for (key,) in self.rows("SELECT key FROM public.payments")]

    def close(self):
        handlers.registry = self._registry
        self._drain.close()
        self.app.extensions["hookonce_commands"].outcomes.close()
        self.app.extensions["hookonce"].close()
        self.ledger.close()
        del sys.modules["shop_of_tests"]
