from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from tests.support import commands
from tests.support.commands import TOKENS

validator = pytest.importorskip("openapi_spec_validator")


@pytest.mark.parametrize("options", ["", 'dialect = "ietf"', 'in_progress = "wait 2s"\nstatus = 201'])
def test_description_is_valid_and_names_every_command(open_shop, options):
    shop = open_shop(options)

    document = shop.ask(None, None, path="openapi.json", method="GET").json

    validator.validate(document)
    assert set(document["paths"]) == {
        f"/commands/{name}{end}" for name in ("payments", "refunds", "orders") for end in ("", "/{digest}")
    }
    assert not [token for token in TOKENS.values() if token in str(document)]


def test_every_answer_is_described(open_shop):
    shop = open_shop()
    described = shop.ask(None, None, path="openapi.json", method="GET").json["paths"]["/commands/payments"]
    bodies = [{"amount": 5}, {"then": "give up"}, {"then": "refuse"}]
    statuses = {shop.ask(body, f"key-{n}").status for n, body in enumerate(bodies)}
    shop.work()
    statuses |= {shop.ask(body, f"key-{n}").status for n, body in enumerate(bodies) if n != 2}
    statuses |= {shop.ask(bodies[0], key).status for key in (None, "", "key-1")}
    statuses |= {shop.ask("{", "x").status, shop.ask(bodies[0], client="").status}

    assert statuses <= {int(status) for status in described["post"]["responses"]}


class Card(BaseModel):
    number: str


class Payment(BaseModel):
    amount: int
    card: Card


class Paid(BaseModel):
    paid: int


def pay(event: Annotated[Any, Payment], _tx) -> Paid:
    assert isinstance(event.data, Payment)
    return Paid(paid=event.data.amount)


async def pay_later(event: Annotated[Any, Payment], _tx) -> Paid:
    return Paid(paid=event.data.amount)


@pytest.mark.parametrize("function", [pay, pay_later])
def test_models_that_the_handler_names_are_described_read_and_given(open_shop, monkeypatch, function):
    monkeypatch.setattr(commands, "pay", function)
    shop = open_shop()
    shop.announce()

    document = shop.ask(None, None, path="openapi.json", method="GET").json
    good, bad = {"amount": 5, "card": {"number": "4242"}}, {"amount": "much", "card": {}}
    for body, key in ((good, "good"), (bad, "bad")):
        assert shop.ask(body, key).status == 202
    shop.work()
    done, refused = shop.ask(good, "good"), shop.ask(bad, "bad")

    validator.validate(document)
    schemas = document["components"]["schemas"]
    assert schemas["payments.takes"]["properties"]["card"] == {
        "$ref": "#/components/schemas/payments.takes.Card"
    }
    assert {"payments.takes.Card", "payments.gives"} <= schemas.keys()
    assert (done.status, done.json) == (200, {"paid": 5})
    assert (refused.status, refused.json["code"]) == (422, "invalid_body")
    assert "card.number: Field required" in refused.json["detail"]
    assert "much" not in refused.json["detail"]
