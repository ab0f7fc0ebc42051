from datetime import timedelta

import pytest

GOOD = {"handler": '"shop:pay"', "auth": '{ shop = ["env:SHOP"] }'}
TOKENS = {"SHOP": "a-token-of-the-shop", "SHORT": "short"}


def file_of(table, name="payments"):
    return f"[commands.{name}]\n" + "\n".join(f"{key} = {value}" for key, value in table.items())


def test_command_is_read(load):
    chosen = {"in_progress": '"wait 2s"', "timeout": '"5m"', "headers": '["Currency"]'}
    settings = load(file_of(GOOD | chosen), **TOKENS)

    command = settings.commands["payments"]
    assert (command.source, command.handler, command.timeout) == (
        "commands.payments",
        "shop:pay",
        timedelta(minutes=5),
    )
    assert command.auth == {"shop": ("a-token-of-the-shop",)}
    assert "a-token-of-the-shop" in settings.secrets()
    assert "a-token-of-the-shop" not in repr(command)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"handler": '"shop.pay"'}, "expected one like 'shop:create_payment'"),
        ({"auth": "{}"}, "nobody may ask for it"),
        ({"auth": '{ shop = ["env:NONE"] }'}, "auth] shop: entry 1: NONE is not set"),
        ({"auth": '{ shop = ["secret"] }'}, "given by reference"),
        ({"auth": '{ Shop = ["env:SHOP"] }'}, "can't be the name of a client"),
        ({"auth": '{ shop = ["env:SHOP"], till = ["env:SHOP"] }'}, "a token is named twice"),
        ({"auth": '{ shop = ["env:SHORT"] }'}, "shorter than 16"),
        ({"in_progress": '"later"'}, "expected '202', '409' or 'wait 2s'"),
        ({"in_progress": '"wait 31s"'}, "up to 30s"),
        ({"in_progress": '"202"', "dialect": '"ietf"'}, "expected '409' or 'wait 2s'"),
        ({"dialect": '"rfc"'}, "dialect"),
        ({"timeout": '"2h"'}, "an hour at most"),
        ({"tenant": '"X Tenant"'}, "is not the name of a header"),
        ({"status": "404"}, "status"),
        ({"rate": "0"}, "rate"),
        ({"handlers": '"shop:pay"'}, "handlers"),
    ],
)
def test_mistake_is_told(mistakes, changes, said):
    (found,) = mistakes(file_of(GOOD | changes), **TOKENS)

    assert said in found
    assert "a-token-of" not in found


def test_name_is_one(mistakes):
    assert "the name must be" in mistakes(file_of(GOOD, name='"pay/ments"'), **TOKENS)[0]


def test_worker_needs_no_tokens(load):
    assert load(file_of(GOOD), need_secrets=False).commands["payments"].auth == {"shop": ()}
