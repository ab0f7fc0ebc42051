import pytest

from tests.support.commands import TOKENS

validator = pytest.importorskip("openapi_spec_validator")


@pytest.mark.parametrize("options", ["", 'dialect = "ietf"', 'in_progress = "wait 2s"\nstatus = 201'])
def test_description_is_valid_and_names_every_command(open_shop, options):
    shop = open_shop(options)

    document = shop.ask(None, None, path="openapi.json", method="GET", client="").json

    validator.validate(document)
    assert set(document["paths"]) == {
        f"/commands/{name}{end}" for name in ("payments", "refunds", "orders") for end in ("", "/{digest}")
    }
    assert not [token for token in TOKENS.values() if token in str(document)]


def test_every_answer_is_described(open_shop):
    shop = open_shop()
    described = shop.ask(None, None, path="openapi.json", method="GET", client="").json["paths"][
        "/commands/payments"
    ]
    bodies = [{"amount": 5}, {"then": "give up"}, {"then": "refuse"}]
    statuses = {shop.ask(body, f"key-{n}").status for n, body in enumerate(bodies)}
    shop.work()
    statuses |= {shop.ask(body, f"key-{n}").status for n, body in enumerate(bodies) if n != 2}
    statuses |= {shop.ask(bodies[0], key).status for key in (None, "", "key-1")}
    statuses |= {shop.ask("{", "x").status, shop.ask(bodies[0], client="").status}

    assert statuses <= {int(status) for status in described["post"]["responses"]}
