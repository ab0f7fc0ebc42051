"""A shop whose process dies at each failpoint in turn, and the next one that serves the same request.

`python -m tests.support.idempotency.cut <place> <directory> <how>`: says one JSON line per failpoint, with the
effects and answers. `how` is what an attempt does that is not the first: `recover` asks whether the effect is there,
`repeat` does it again, and `transaction` has it in the database, in the transaction of the answer.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path

import flask
import psycopg

from hookonce import current_operation, idempotent
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.failpoints import OF_OPERATIONS, arm
from hookonce.receiver.idempotency.records import Key, scope_of
from tests.support.children import in_child
from tests.support.idempotency.places import OnDynamo, OnPostgres, OnRedis

LEASE = timedelta(minutes=1)


def place_of(spec):
    kind, *rest = spec.split()
    return {"postgresql": OnPostgres, "redis": OnRedis, "dynamodb": OnDynamo}[kind](*rest)


class Shop:
    def __init__(self, place, directory, how):
        self._place, self._how = place, how
        self.effects = Path(directory) / "effects"

    def serve(self, key):
        """Serve one request; its status, body, and whether it is an answer of before."""
        store = self._place.open()
        options = {"lease": LEASE, "moves_money": False}
        if self._how == "transaction":
            options["transaction"] = lambda: psycopg.connect(libpq_url(self._place.url))
        app = flask.Flask("shop")
        app.testing = True
        app.post("/")(idempotent("pay", scope=None, store=store, **options)(self._pay))
        response = app.test_client().post("/", headers={"Idempotency-Key": key})
        return response.status_code, response.text, "Idempotency-Replayed" in response.headers

    def _pay(self):
        operation = current_operation()
        asks = self._how == "recover" and operation.is_uncertain
        if self._how == "transaction":
            operation.transaction.execute("INSERT INTO public.paid VALUES (%s)", [operation.idempotency_key])
        elif not (asks and operation.idempotency_key in self.paid()):
            with self.effects.open("a") as effects:
                effects.write(operation.idempotency_key + "\n")
        return {"attempt": operation.attempt}

    def paid(self):
        if self._how == "transaction":
            with psycopg.connect(libpq_url(self._place.url)) as connection:
                return [key for (key,) in connection.execute("SELECT key FROM public.paid")]
        return self.effects.read_text().split() if self.effects.exists() else []


def main(spec, directory, how):
    place = place_of(spec)
    place.open()  # its children find read what a client of DynamoDB reads at first
    shop = Shop(place, directory, how)
    log = Path(directory) / "points"
    if how == "transaction":
        with psycopg.connect(libpq_url(place.url)) as connection:
            connection.execute("CREATE TABLE public.paid (key text)")
    for fatal in range(1, len(OF_OPERATIONS) + 2):
        key = f"request-{fatal}"
        log.write_text("")

        def cut(key=key, fatal=fatal):
            arm(fatal, str(log))
            return shop.serve(key)

        before = len(shop.paid())
        survived, _ = in_child(cut)
        met = log.read_text().split()
        busy = in_child(lambda key=key: shop.serve(key))[1]
        place.age(Key(scope_of("pay"), key), 2 * LEASE)
        later = [in_child(lambda key=key: shop.serve(key))[1] for _ in range(2)]
        new = shop.paid()[before:]
        told = {"survived": survived, "met": met, "busy": busy, "later": later, "effects": new}
        sys.stdout.write(json.dumps(told) + "\n")
        if survived:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
