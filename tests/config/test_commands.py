from datetime import timedelta

import pytest

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings

GOOD = {"handler": '"shop:pay"', "auth": '{ shop = ["env:SHOP"] }'}


def load(tmp_path, table, name="payments", **environ):
    path = tmp_path / "hookonce.toml"
    path.write_text(f"[commands.{name}]\n" + "\n".join(f"{key} = {value}" for key, value in table.items()))
    given = {"HOOKONCE_CONFIG": str(path), "HOOKONCE_DATA": str(tmp_path), "SHOP": "a-token-of-the-shop"}
    return load_settings(given | environ)


def test_command_is_read(tmp_path):
    settings = load(
        tmp_path, GOOD | {"in_progress": '"wait 2s"', "timeout": '"5m"', "headers": '["Currency"]'}
    )

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
def test_mistake_is_told(tmp_path, changes, said):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, GOOD | changes, SHORT="short")

    assert said in str(error.value)
    assert "a-token-of" not in str(error.value)


def test_name_is_one(tmp_path):
    with pytest.raises(ConfigError, match="the name must be"):
        load(tmp_path, GOOD, name='"pay/ments"')


def test_worker_needs_no_tokens(tmp_path):
    path = tmp_path / "hookonce.toml"
    path.write_text('[commands.payments]\nhandler = "shop:pay"\nauth = { shop = ["env:NONE"] }')

    environ = {"HOOKONCE_CONFIG": str(path), "HOOKONCE_DATA": str(tmp_path)}
    assert load_settings(environ, need_secrets=False).commands["payments"].auth == {"shop": ()}
