import base64
import importlib
import os
import subprocess
import sys
import tomllib
from datetime import UTC, datetime

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit import Hmac, StandardWebhooks, Timestamp, Token
from hookonce.providers.kit.http_file import Captured, read, written
from hookonce.providers.kit.registry import load
from hookonce.receiver.cli.capture.masking import Masker
from hookonce.receiver.cli.new.config_edit import CanNotEdit, with_place

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
    Hmac(header="x-sign", timestamp=Timestamp(header="x-ts"), signed="{url}{timestamp}{sha256:raw}"),
    Hmac(
        header="x-sign",
        timestamp=Timestamp(header="x-ts"),
        signed="{header:x-message-id}{timestamp}{body}",
        secret="base64",
    ),
    Hmac(header="x-sign", timestamp=Timestamp(header="x-ts"), signed="{header:x-ref}.{timestamp}.{body}"),
    Hmac(
        header="x-sign",
        prefix="hmac ",
        timestamp=Timestamp(header="x-ts"),
        signed="{timestamp}:{header:x-ref}:{body}",
    ),
]


def sign(scheme, secret):
    """What a sender of this scheme would send, as it was captured."""
    headers = {
        "x-message-id": "msg_7",
        "x-ref": "7f3c9a1e",
        "content-type": "application/json",
        "host": "in.example",
    }
    signed = scheme.sign(BODY, secret, NOW, url=URL, method="POST", event_id="msg_7", headers=headers)
    return written(Captured("POST", "/hooks/acme", list({**headers, **signed}.items()), BODY, NOW))


def test_new_provider_passes_its_own_tests_at_once(place, hookonce):
    made = hookonce("new", "provider", "acme-pay")

    assert made.code == 0
    assert "14 passed" in run_tests(place, "tests/providers/acme_pay")
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


@pytest.mark.parametrize("option", [["--secret", "x"], ["--table"]])
def test_new_provider_wants_a_delivery_for_what_is_about_one(place, hookonce, option):
    made = hookonce("new", "provider", "acme", *option)

    assert (made.code, f"{option[0]} needs a captured delivery" in made.err) == (2, True)
    assert not (place / "webhook_providers").exists()


def test_new_provider_in_a_clone_is_one_of_ours(place, hookonce, monkeypatch):
    (place / "providers").mkdir()
    monkeypatch.setattr("hookonce.providers.__file__", str(place / "providers" / "__init__.py"))
    before = (place / "hookonce.toml").read_text()

    made = hookonce("new", "provider", "acme")

    assert made.code == 0, made.err
    assert "now run: python -m pytest tests/providers -k acme" in made.err
    written = sorted(path.name for path in (place / "tests/providers/acme").iterdir())
    assert written == ["order-created.http", "order-created.toml"]
    assert [path.name for path in (place / "providers").glob("*.py")] == ["acme.py"]
    assert (place / "hookonce.toml").read_text() == before


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
    event_id = (
        "msg_7" if "x-message-id" in scheme.signed else "7f3c9a1e" if "x-ref" in scheme.signed else "evt_1"
    )
    assert f"its event is {event_id} of type order.paid" in made.err
    module = (place / "webhook_providers/acme.py").read_text()
    assert f'header="{scheme.header}"' in module
    facts = (place / "tests/providers/acme/order.toml").read_text()
    assert f'expected_event_id = "{event_id}"' in facts


@pytest.mark.parametrize(("number", "secret"), [(5, "some text"), (9, "00ff" * 8)])
def test_new_provider_from_a_delivery_passes_its_own_tests(place, hookonce, number, secret):
    (place / "order.http").write_bytes(sign(MANY[number], secret))

    hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    assert "14 passed" in run_tests(place, "tests/providers/acme")


@pytest.mark.parametrize(
    ("scheme", "shown"),
    [
        (Token(header="x-acme-token"), 'Token(header="x-acme-token")'),
        (Token(header="authorization", prefix="Bearer "), 'Token(header="authorization", prefix="Bearer ")'),
        (Token(basic=True), "Token(basic=True)"),
        (StandardWebhooks(vendors=("webhook",)), 'StandardWebhooks(vendors=("webhook",))'),
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
    assert "14 passed" in run_tests(place, "tests/providers/acme")


@pytest.mark.parametrize(
    ("secret", "said", "code"),
    [("", "with --secret it would be tried out", 0), ("wrong", "no way of signing that was tried fits", 3)],
)
def test_new_provider_says_when_it_guesses(place, hookonce, secret, said, code):
    (place / "order.http").write_bytes(sign(MANY[0], "right"))

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    assert (made.code, said in made.err) == (code, True)
    assert "failed" in run_tests(place, "tests/providers/acme")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"POST / HTTP/1.1\nhost: a\n\n{}", "nothing in order.http looks like a signature"),
        (b"no request", "the first line is not a request"),
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


ENDS = {
    "query": (Token(query="key"), 'in = "query:key"'),
    "path": (Token(path=True), 'in = "path"'),
    "field": (Token(field="$.auth.token"), 'in = "$.auth.token"'),
    "header": (Token(header="x-acme"), 'in = "header:x-acme"'),
    "bearer": (Token(header="authorization", prefix="Bearer "), 'in = "bearer"'),
    "basic": (Token(basic=True), 'in = "basic"'),
    "prefix": (
        Token(header="x-authorization", prefix="Key "),
        'in = "header:x-authorization", prefix = "Key "',
    ),
    "md5": (Hmac(header="x-signature", hash="md5"), 'hash = "md5"'),
    "signed query": (Hmac(query="signature", encoding="base64"), 'query = "signature"'),
    "time": (MANY[6], 'timestamp = { header = "x-timestamp", unit = "ms" }'),
}


def captured(scheme, secret):
    """A delivery as `hookonce capture` would have written it."""
    headers = {"content-type": "application/json", "host": "in.example"}
    if isinstance(scheme, Token) or scheme.query:
        sent = scheme.deliver(BODY, secret, NOW, url="/hooks/acme", headers=headers)
    else:
        sent = Delivery("POST", "/hooks/acme", headers | scheme.sign(BODY, secret, NOW), BODY)
    target = f"{sent.url}/{sent.path_secret}" if sent.path_secret else sent.url
    request = Captured("POST", target, list(sent.headers.items()), sent.body, NOW)
    return written(Masker([secret]).masked(request)[0])


@pytest.mark.parametrize(("scheme", "said"), ENDS.values(), ids=ENDS)
def test_new_provider_proposes_a_table_that_takes_the_delivery(place, hookonce, scheme, said):
    secret = "user:00ff00ff00ff00ff" if scheme is ENDS["basic"][0] else "00ff00ff00ff00ff"
    (place / "order.http").write_bytes(captured(scheme, secret))

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret, "--table")

    assert made.code == 0, made.err
    assert said in made.out.decode()
    assert not (place / "webhook_providers").exists()
    table = tomllib.loads(made.out.decode())["sources"]["acme"]
    provider = load(table["provider"], options=table[table["provider"]])
    request = read((place / "order.http").read_bytes())
    url, path_secret = request.addressed(secret)
    delivery = Delivery("POST", url, request.lowered(secret), request.body, path_secret)
    provider.verify(delivery, [secret], NOW)
    assert [(event.id, event.type) for event in provider.events(delivery)] == [("evt_1", "order.paid")]


@pytest.mark.parametrize("kind", ["query", "path", "field", "signed query"])
def test_new_provider_writes_a_module_for_what_is_proven_outside_of_headers(
    place, hookonce, monkeypatch, kind
):
    scheme, secret = ENDS[kind][0], "00ff00ff00ff00ff"
    (place / "order.http").write_bytes(captured(scheme, secret))

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    _, _, told = made.err.partition("no module is needed for this: in hookonce.toml it is\n")
    assert tomllib.loads(told.partition("\nregistered")[0])["sources"]["acme"]["provider"] in {
        "hmac",
        "token",
    }
    assert "14 passed" in run_tests(place, "tests/providers/acme")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--table"], 2, "--table needs a captured delivery; add --from"),
        (["--table", "--from", "order.http"], 1, "with --secret it would be tried out, so no table"),
        (
            ["--table", "--from", "order.http", "--secret", "wrong"],
            1,
            "no way of signing that was tried fits",
        ),
    ],
)
def test_new_provider_proposes_no_table_that_is_a_guess(place, hookonce, arguments, code, said):
    (place / "order.http").write_bytes(captured(MANY[0], "right"))

    made = hookonce("new", "provider", "acme", *arguments)

    assert (made.code, said in made.err) == (code, True)


def test_new_provider_takes_a_secret_that_comes_along_for_a_token_though_something_is_signed(place, hookonce):
    secret = "00ff00ff00ff00ff"
    headers = {"x-request-hash": "ab" * 32, "x-acme": secret}
    request = Captured("POST", "/hooks/acme", list(headers.items()), b"name=a&token=b", NOW)
    (place / "order.http").write_bytes(written(request))

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret, "--table")

    assert tomllib.loads(made.out.decode())["sources"]["acme"]["token"]["in"] == "header:x-acme"
