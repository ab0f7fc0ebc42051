"""A client waits for its answer by default; a header that is sent twice; and who may read the description."""

import threading

import pytest

from hookonce.receiver.config.commands import Command
from hookonce.receiver.endpoints import policy
from tests.support.commands import AUTH, DEADLINE, TOKENS
from tests.support.waiting import until

BODY = {"amount": 5}
CONFIG = f"""
[commands.payments]
handler = "shop_of_tests:pay"
{AUTH}

[commands.secrets]
handler = "shop_of_tests:pay"
auth = {{ till = ["env:TILL"] }}
"""


def test_answer_is_waited_for_by_default(open_shop):
    shop = open_shop(config=CONFIG)

    (answer,) = shop.meanwhile(lambda: shop.ask(BODY))

    assert Command(name="pay", handler="shop:pay", auth={}).in_progress == "wait 2s"
    assert (answer.status, answer.json["paid"]) == (200, 5)


@pytest.mark.parametrize(
    "preferred", ["respond-async", "handling=strict, Respond-Async; x=y", "respond-async, wait=0"]
)
def test_client_that_prefers_it_is_told_at_once(open_shop, preferred):
    shop = open_shop('in_progress = "wait 30s"')
    answers = []

    for _ in range(2):
        asking = threading.Thread(target=lambda: answers.append(shop.ask(BODY, Prefer=preferred)))
        asking.start()
        asking.join(DEADLINE / 3)

    assert [(each.status, each.json) for each in answers] == [(202, {"status": "in_progress"})] * 2
    assert answers[0].headers["Location"]
    shop.work()
    assert shop.ask(BODY, Prefer=preferred).status == 200


def test_preference_for_something_else_is_passed_over(open_shop):
    shop = open_shop('in_progress = "wait 20s"')

    (answer,) = shop.meanwhile(lambda: shop.ask(BODY, Prefer="return=minimal, wait=0"))

    assert answer.status == 200


def test_description_is_for_clients_and_of_what_they_may_ask_for(open_shop):
    shop = open_shop(config=CONFIG)

    def look(client):
        return shop.ask(None, None, path="openapi.json", method="GET", client=client)

    for stranger in ("", "a-token-of-nobody"):
        answer = look(stranger)
        assert (answer.status, answer.json["code"]) == (401, "unauthorized")
        assert "payments" not in answer.body.decode()
    described = {client: set(look(client).json["paths"]) for client in ("SHOP", "TILL")}
    assert described["SHOP"] == {"/commands/payments", "/commands/payments/{digest}"}
    assert described["TILL"] > described["SHOP"]


def test_command_that_is_asked_for_under_two_keys_is_refused(shop):
    sent = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKENS['SHOP']}"}
    headers = [*sent.items(), ("Idempotency-Key", "one"), ("Idempotency-Key", "two")]

    response = shop.app.test_client().post("/commands/payments", json=BODY, headers=headers)

    assert (response.status_code, response.json["code"]) == (400, "bad_key")
    assert "one key" in response.json["detail"]
    assert policy.read_key('"a,b"') == "a,b"
    until(lambda: shop.rows("SELECT FROM hookonce.event_states"), [])
