import base64
import hashlib

import pytest

from hookonce.receiver.config.encryption_keys import read_keyring
from hookonce.receiver.encryption import OFF, KeyMissing, Keyring, Tampered, body_context, key_id

OLD, NEW = (hashlib.sha256(name).digest() for name in (b"old", b"new"))
BOND = body_context("stripe", "evt_1", b"\1" * 32)


def test_keyring_opens_what_any_of_its_keys_sealed():
    text, key = Keyring([OLD]).encrypt(b"a body", BOND)

    assert Keyring([NEW, OLD]).open(text, key, BOND) == b"a body"
    assert key == key_id(OLD)
    assert b"a body" not in text


def test_keyring_seals_with_its_first_key_and_never_twice_alike():
    keyring = Keyring([NEW, OLD])

    first, second = keyring.encrypt(b"x", BOND), keyring.encrypt(b"x", BOND)

    assert first[1] == key_id(NEW)
    assert first[0] != second[0]


def test_keyring_without_keys_leaves_everything_as_it_is():
    assert OFF.encrypt(b"x", BOND) == (b"x", None)
    assert OFF.open(b"x", None, BOND) == b"x"


def test_keyring_names_the_key_that_is_missing_and_what_to_do():
    text, key = Keyring([OLD]).encrypt(b"x", BOND)

    with pytest.raises(KeyMissing, match=rf"key {key}.*add that key to encryption_keys"):
        Keyring([NEW]).open(text, key, BOND)


@pytest.mark.parametrize(
    "bond",
    [
        body_context("stripe", "evt_2", b"\1" * 32),
        body_context("stripe2", "evt_1", b"\1" * 32),
        body_context("stripe", "evt_1", b"\2" * 32),
        body_context("stripeevt", "_1", b"\1" * 32),
        ("conflict", *BOND[1:]),
    ],
    ids=["event", "source", "fingerprint", "moved border", "kind"],
)
def test_sealed_text_does_not_open_elsewhere(bond):
    keyring = Keyring([OLD])
    text, key = keyring.encrypt(b"x", BOND)

    with pytest.raises(Tampered):
        keyring.open(text, key, bond)


def test_sealed_text_does_not_open_after_any_change():
    keyring = Keyring([OLD])
    text, key = keyring.encrypt(b"abc", BOND)
    changed = [text[:n] + bytes([text[n] ^ 1]) + text[n + 1 :] for n in range(len(text))]

    for damaged in [*changed, *(text[:n] for n in range(len(text))), text + b"\0"]:
        with pytest.raises(Tampered):
            keyring.open(damaged, key, BOND)


def test_keyring_does_not_seal_with_another_key_when_its_first_is_not_here():
    keyring = Keyring([None, OLD])

    with pytest.raises(KeyMissing, match="first of encryption_keys"):
        keyring.encrypt(b"x", BOND)


@pytest.mark.parametrize(
    "write", [base64.b64encode, base64.urlsafe_b64encode, lambda key: key.hex().encode()]
)
def test_keys_are_read_in_every_common_spelling(write, tmp_path):
    (tmp_path / "key").write_bytes(write(NEW) + b"\n")
    mistakes = []

    keyring = read_keyring(
        [f"file:{tmp_path}/key", "env:OLD", "env:OLDER?"],
        {"OLD": write(OLD).decode().rstrip("=")},
        mistakes,
        need_all=True,
    )

    assert not mistakes
    assert keyring.ids == [key_id(NEW), key_id(OLD)]


@pytest.mark.parametrize(
    ("reference", "value", "said"),
    [
        ("env:KEY", "", "entry 1 is missing; set KEY"),
        ("env:KEY?", "", "entry 1 is missing; set KEY"),
        ("env:KEY", base64.b64encode(OLD[:16]).decode(), "entry 1 has 16 bytes"),
        ("env:KEY", "not base64!", "entry 1 is not a key"),
        ("env:KEY", "A" * 43 + "=", "entry 1 is not random"),
        (base64.b64encode(OLD).decode(), "", "entry 1 is not a reference"),
        ("file:/nowhere/key", "", "entry 1 is missing; set /nowhere/key"),
    ],
)
def test_keys_are_a_mistake_when_they_are_none_and_never_show(reference, value, said):
    mistakes = []

    read_keyring([reference], {"KEY": value}, mistakes, need_all=True)

    assert [mistake.startswith(f"encryption_keys: {said}") for mistake in mistakes] == [True], mistakes
    assert base64.b64encode(OLD).decode() not in mistakes[0]


def test_keys_may_be_missing_for_commands_that_then_seal_nothing():
    mistakes = []

    keyring = read_keyring(["env:A", "env:B"], {"B": OLD.hex()}, mistakes, need_all=False)

    assert not mistakes
    assert (keyring.is_on, keyring.first, keyring.ids) == (True, None, [key_id(OLD)])
