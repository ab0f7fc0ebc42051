from base64 import b64encode

import pytest

from hookonce.receiver.config.encryption_keys import read_keyring
from hookonce.receiver.config.secret_references import Reference, resolve
from hookonce.receiver.config.sources import Around, read_source, table_of

UNREADABLE = b"\xff\xfe"


@pytest.mark.parametrize("reference", ["env:THERE", "file:there", "env:THERE?", "file:there?"])
def test_reference_is_resolved_to_what_it_names(tmp_path, monkeypatch, reference):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("s3cret\n")

    assert resolve(reference, {"THERE": " s3cret "}) == "s3cret"


@pytest.mark.parametrize("value", [None, "", " "], ids=["absent", "empty", "blank"])
@pytest.mark.parametrize(
    ("reference", "said"), [("env:NAME", "NAME is not set"), ("file:name", "name is missing or empty")]
)
def test_reference_to_nothing_is_a_mistake_unless_it_may_be_absent(
    tmp_path, monkeypatch, reference, said, value
):
    monkeypatch.chdir(tmp_path)
    if value is not None:
        (tmp_path / "name").write_text(value)
    environ = {} if value is None else {"NAME": value}

    with pytest.raises(ValueError, match=f"^{said}$"):
        resolve(reference, environ)

    assert resolve(f"{reference}?", environ) == ""


@pytest.mark.parametrize("text", ["s3cret", "env:", "file:", "env:?", "file:?", "vault:there", ""])
def test_reference_is_not_what_names_no_place(text):
    assert Reference.parse(text) is None


def test_unreadable_file_is_told_apart_from_an_absent_one_by_each_setting(tmp_path):
    (tmp_path / "broken").write_bytes(UNREADABLE)
    reference = f"file:{tmp_path}/broken?"
    mistakes = []

    with pytest.raises(ValueError, match=r"broken can't be read: UnicodeDecodeError"):
        resolve(reference, {})
    read_keyring([reference], {}, mistakes, need_all=True)
    read_source("billing", table_of("stripe", reference), Around({}, need_secrets=True), mistakes)

    assert [mistake.partition(f"{tmp_path}/broken")[2] for mistake in mistakes] == [
        (
            ") can't be read: UnicodeDecodeError; "
            "expected 32 random bytes in base64 or hex, as `hookonce keys generate` makes them"
        ),
        " can't be read: UnicodeDecodeError",
    ]
    assert resolve(reference, {}, is_needed=False) == ""


@pytest.mark.parametrize("provider", ["standard_webhooks", "svix", "clerk", "resend"])
@pytest.mark.parametrize(("size", "is_refused"), [(1, True), (15, True), (16, False), (24, False)])
def test_whsec_key_that_is_cut_off_is_refused_by_the_name_of_its_setting(provider, size, is_refused):
    secret = "whsec_" + b64encode(bytes(range(size))).decode()
    mistakes = []

    around = Around({"BILLING_SECRET": secret}, need_secrets=True)
    read_source("billing", table_of(provider, "env:BILLING_SECRET"), around, mistakes)

    assert bool(mistakes) is is_refused
    assert all("env:BILLING_SECRET" in each and f"{size} bytes" in each for each in mistakes)
    assert secret not in str(mistakes)
