import os
from base64 import b64decode, b64encode

import pytest

from hookonce.receiver.encryption import Keyring, key_id
from hookonce.receiver.ledger.store import store
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.new_event import new_event

OLD, NEW = os.urandom(32), os.urandom(32)


@pytest.fixture
def configured(inbox, monkeypatch):
    """Configure keys: the environment variable of each."""
    monkeypatch.setenv("NEW", b64encode(NEW).decode())
    monkeypatch.setenv("OLD", b64encode(OLD).decode())

    tables = (inbox / "hookonce.toml").read_text()

    def write(*references):
        listed = ", ".join(f'"{reference}"' for reference in references)
        (inbox / "hookonce.toml").write_text(f"[receiver]\nencryption_keys = [{listed}]\n{tables}")

    return write


@pytest.fixture
def an_old_row(ledger):
    store(ledger, [sealed(new_event("evt_1", b'{"card": 4242}'), Keyring([OLD]))])


def test_keys_generate_prints_a_key_that_can_be_configured(place, hookonce):  # noqa: ARG001
    made = hookonce("keys", "generate")

    key = b64decode(made.out)
    assert len(key) == 32
    assert key_id(key) in made.err
    assert hookonce("keys", "generate").out != made.out


def test_keys_list_counts_the_rows_of_every_key(configured, an_old_row, hookonce, stored):  # noqa: ARG001
    configured("env:NEW")
    stored("evt_2")

    rows = hookonce("keys", "list", "--json").documents

    assert [(row["key"], row["use"], row["bodies"]) for row in rows] == [
        (key_id(NEW), "seals", 0),
        (None, "in the clear", 1),
        (key_id(OLD), "not configured here", 1),
    ]


def test_keys_rotate_seals_anew_and_says_so(configured, an_old_row, hookonce):  # noqa: ARG001
    configured("env:NEW", "env:OLD")

    rotated = hookonce("keys", "rotate", "--json")

    assert rotated.code == 0
    assert rotated.documents == [{"key": key_id(NEW), "sealed": 1, "left": {}}]
    assert hookonce("events", "show", "stripe:evt_1", "--raw").out == b'{"card": 4242}'


def test_keys_rotate_is_partial_when_rows_do_not_open(configured, an_old_row, hookonce):  # noqa: ARG001
    configured("env:NEW")

    rotated = hookonce("keys", "rotate")

    assert rotated.code == 3
    assert f"1 rows are left under key {key_id(OLD)}" in rotated.err


def test_keys_rotate_is_refused_without_keys(inbox, hookonce):  # noqa: ARG001
    refused = hookonce("keys", "rotate")

    assert refused.code == 78
    assert "hookonce keys generate" in refused.err


def test_event_is_shown_and_its_raw_body_refused_without_the_key(configured, an_old_row, hookonce):  # noqa: ARG001
    configured("env:NEW")

    shown, raw = (
        hookonce("events", "show", "stripe:evt_1"),
        hookonce("events", "show", "stripe:evt_1", "--raw"),
    )

    assert (shown.code, raw.code, raw.out) == (0, 78, b"")
    assert f"sealed with key {key_id(OLD)}" in shown.out.decode()
    assert "add that key to encryption_keys" in raw.err


def test_export_names_the_event_that_no_configured_key_opens(configured, an_old_row, hookonce):  # noqa: ARG001
    configured("env:NEW")

    exported = hookonce("events", "export")

    assert exported.code == 78
    assert f"event 1 can't be exported: it is sealed with key {key_id(OLD)}" in exported.err


@pytest.mark.parametrize(
    ("references", "level", "said"),
    [
        (["env:NEW"], "fail", f"rows are sealed with key {key_id(OLD)}, which is not configured here"),
        ([], "fail", "which is not configured here"),
        (["env:NEW", "env:OLD"], "ok", "`hookonce keys rotate` seals them"),
        (["env:OLD"], "ok", "everything is sealed"),
        (["env:ABSENT", "env:OLD"], "warn", "the first of encryption_keys is not set here"),
    ],
    ids=["only the new key", "no key", "both keys", "only the old key", "a key that is not here"],
)
def test_doctor_says_whether_everything_opens(configured, an_old_row, hookonce, references, level, said):  # noqa: ARG001
    configured(*references)

    (found,) = [row for row in hookonce("doctor", "--json").documents if row["check"] == "encryption"]

    assert found["level"] == level
    assert said in found["text"]
