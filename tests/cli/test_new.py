import base64
import importlib
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from providers.kit import Hmac, StandardWebhooks, Timestamp, Token
from providers.kit.conformance.captured import Captured, written
from receiver.cli.new_config import CanNotEdit, with_place

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://in.example/hooks/acme"
BODY = b'{"id": "evt_1", "type": "order.paid", "created_at": "2026-01-01T00:00:00Z"}'
MANY = [
    Hmac(header="x-acme-signature"),
    Hmac(header="x-acme-hmac-sha256", encoding="base64"),
    Hmac(header="x-signature", prefix="sha512=", hash="sha512"),
    Hmac(header="acme-sig", hash="sha1", encoding="base64", signed="{url}{body}"),
    Hmac(header="acme-signature", key="v1", timestamp=Timestamp(key="t"), signed="{timestamp}.{body}"),
    Hmac(
        header="acme-signature",
        key="h",
        separator=";",
        timestamp=Timestamp(key="ts"),
        signed="{timestamp}:{body}",
    ),
    Hmac(header="x-sig", timestamp=Timestamp(header="x-timestamp", unit="ms"), signed="{body}{timestamp}"),
    Hmac(
        header="x-hash",
        timestamp=Timestamp(header="x-sent-at", unit="iso"),
        signed="{timestamp}|{body}",
        secret="hex",
    ),
    Hmac(
        header="x-s-signature",
        prefix="v0=",
        timestamp=Timestamp(header="x-time"),
        signed="v0:{timestamp}:{body}",
    ),
    Hmac(
        header="x-sign",
        timestamp=Timestamp(header="x-ts"),
        signed="{header:x-message-id}{timestamp}{body}",
        secret="base64",
    ),
]


def sign(scheme, secret):
    """What a sender of this scheme would send, as it was captured."""
    headers = {"x-message-id": "msg_7", "content-type": "application/json", "host": "in.example"}
    signed = scheme.sign(BODY, secret, NOW, url=URL, method="POST", event_id="msg_7", headers=headers)
    return written(Captured("POST", "/hooks/acme", list({**headers, **signed}.items()), BODY, NOW))


def test_new_provider_passes_its_own_tests_at_once(place, hookonce):
    made = hookonce("new", "provider", "acme-pay")

    assert made.code == 0
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/providers/acme_pay"], cwd=place, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "14 passed" in tested.stdout
    assert (place / "hookonce.toml").read_text().endswith('\n[receiver]\nproviders = ["webhook_providers"]\n')
    assert "acme_pay" in [row["name"] for row in hookonce("providers", "list", "--json").documents]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("name", "code"), [("stripe", 1), ("Äcme", 2), ("../x", 2), ("class", 2)])
def test_new_provider_refuses_a_name_that_is_taken_or_no_name(place, hookonce, name, code):
    assert hookonce("new", "provider", name).code == code
    assert not (place / "webhook_providers").exists()


@pytest.mark.usefixtures("place")
def test_new_provider_says_what_to_remove_to_write_it_anew(hookonce):
    hookonce("new", "provider", "acme")
    importlib.invalidate_caches()

    again = hookonce("new", "provider", "acme")

    assert again.code == 1
    assert "webhook_providers/acme.py, tests/providers/acme/test_acme.py" in again.err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[receiver]\nproviders = ["p"]\n'),
        (
            "# mine\n[sources.a]\nsecrets = []",
            '# mine\n[sources.a]\nsecrets = []\n\n[receiver]\nproviders = ["p"]\n',
        ),
        ("[receiver] # x\n[sources.a]\n", '[receiver] # x\nproviders = ["p"]\n[sources.a]\n'),
        ("[receiver]\nproviders = []\n", '[receiver]\nproviders = ["p"]\n'),
        ('[receiver]\nproviders = [  # x\n  "q",\n]\n', '[receiver]\nproviders = ["p",   # x\n  "q",\n]\n'),
        ('[receiver]\nproviders = [\n  "q",\n]\n', '[receiver]\nproviders = ["p", \n  "q",\n]\n'),
    ],
)
def test_registering_changes_nothing_but_the_list(before, after):
    assert with_place(before, "p") == after


@pytest.mark.parametrize(
    "text", ['receiver = { handlers = ["h"] }\n', 'receiver.handlers = ["h"]\n', '"""', "receiver = 1\n"]
)
def test_registering_gives_up_on_what_it_can_not_edit(text):
    with pytest.raises(CanNotEdit):
        with_place(text, "p")


def run_tests(place, folder):
    command = [sys.executable, "-m", "pytest", "-q", folder]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they would take most of the time
    return subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("scheme", MANY, ids=lambda scheme: f"{scheme.header} {scheme.signed}")
def test_new_provider_finds_out_how_a_captured_delivery_is_signed(place, hookonce, scheme):
    secret = "00ff" * 8
    (place / "order.http").write_bytes(sign(scheme, secret))

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    assert made.code == 0, made.err
    assert "the secret verifies it" in made.err
    event_id = "msg_7" if "x-message-id" in scheme.signed else "evt_1"
    assert f"its event is {event_id} of type order.paid" in made.err
    module = (place / "webhook_providers/acme.py").read_text()
    assert f'header="{scheme.header}"' in module
    facts = (place / "tests/providers/acme/order.toml").read_text()
    assert f'expected_event_id = "{event_id}"' in facts


@pytest.mark.parametrize(("number", "secret"), [(5, "some text"), (9, "00ff" * 8)])
def test_new_provider_from_a_delivery_passes_its_own_tests(place, hookonce, number, secret):
    (place / "order.http").write_bytes(sign(MANY[number], secret))

    hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    assert "13 passed" in run_tests(place, "tests/providers/acme")


@pytest.mark.parametrize(
    ("scheme", "shown"),
    [
        (Token(header="x-acme-token"), 'Token(header="x-acme-token")'),
        (Token(header="authorization", prefix="Bearer "), 'Token(header="authorization", prefix="Bearer ")'),
        (Token(basic=True), "Token(basic=True)"),
        (StandardWebhooks(vendors=("webhook",)), "StandardWebhooks(vendors=('webhook',))"),
    ],
    ids=["header", "bearer", "basic", "standard webhooks"],
)
def test_new_provider_knows_tokens_and_standard_webhooks(place, hookonce, scheme, shown):
    is_token = isinstance(scheme, Token)
    secret = "user:a password" if is_token else f"whsec_{base64.b64encode(b'k' * 32).decode()}"
    raw = sign(scheme, secret)
    for text in (base64.b64encode(secret.encode()), secret.encode()):
        raw = raw.replace(text, b"[secret]")
    (place / "order.http").write_bytes(raw)

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    assert made.code == 0, made.err
    assert shown in (place / "webhook_providers/acme.py").read_text()
    assert "13 passed" in run_tests(place, "tests/providers/acme")


@pytest.mark.parametrize(
    ("secret", "said"),
    [("", "with --secret it would be tried out"), ("wrong", "no way of signing that was tried fits")],
)
def test_new_provider_says_when_it_guesses(place, hookonce, secret, said):
    (place / "order.http").write_bytes(sign(MANY[0], "right"))

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    assert (made.code, said in made.err) == (0, True)
    assert "failed" in run_tests(place, "tests/providers/acme")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"POST / HTTP/1.1\nhost: a\n\n{}", "nothing in order.http looks like a signature"),
        (b"no request", "the first line is no request"),
        (None, "can't be read"),
    ],
)
def test_new_provider_says_what_is_wrong_with_a_delivery(place, hookonce, raw, said):
    if raw:
        (place / "order.http").write_bytes(raw)

    made = hookonce("new", "provider", "acme", "--from", "order.http")

    assert made.code == 1
    assert said in made.err
    assert not (place / "webhook_providers").exists()
