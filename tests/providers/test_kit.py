import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import Hmac, StandardWebhooks, Timestamp, Token, instant
from hookonce.providers.kit.crypto.secret_keys import key_of
from hookonce.providers.kit.crypto.signature_text import speller
from hookonce.providers.kit.signing.message_template import template

NOW = datetime(2026, 1, 1, tzinfo=UTC)
T = "1767225600"
SECRET = "secret"


def reason_of(scheme, delivery, secrets=("secret",), now=NOW):
    try:
        scheme.verify(delivery, secrets, now)
    except Rejected as error:
        return error.reason
    return None


def sent(scheme, body=b"{}", secret=SECRET, now=NOW, **changed):
    return Delivery("POST", "", {**scheme.sign(body, secret, now), **changed}, body)


STAMPED = Hmac(header="x-sig", signed="{timestamp}.{body}", timestamp=Timestamp(header="X-Time"))
LISTED = Hmac(header="x-sig", key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))


@pytest.mark.parametrize(
    "scheme",
    [
        Hmac(header="X-Sig"),
        Hmac(header=("x-sig", "y-sig"), hash="sha1", prefix="sha1="),
        Hmac(header="x-sig", hash="sha512", encoding="base64url", secret="base64"),
        Hmac(header="x-sig", encoding="base64", separator=","),
        Hmac(header="x-sig", key="s", separator=";"),
        Hmac(header="x-sig", signed="{method} {url}|{body}", secret="hex"),
        Hmac(header="x-sig", signed="{timestamp}{body}", timestamp=Timestamp(header="x-t", unit="iso")),
        STAMPED,
        LISTED,
        StandardWebhooks(secret="raw"),
        StandardWebhooks(vendors=("svix",), secret="base64"),
        Token(header="X-Token"),
        Token(header="authorization", prefix="Bearer "),
        Token(basic=True),
    ],
    ids=lambda scheme: re.sub(" at 0x[0-9a-f]+", "", repr(scheme)),
)
def test_scheme_accepts_what_it_signs_and_refuses_others(scheme):
    secret, other = "5ec4e7ab", "0ddba11a"

    assert reason_of(scheme, sent(scheme, secret=secret), [other, secret]) is None
    assert reason_of(scheme, sent(scheme, secret=secret), [other]) == Reason.BAD_SIGNATURE
    assert reason_of(scheme, sent(scheme, secret=secret), ["", " "]) == Reason.NO_SECRET
    assert reason_of(scheme, Delivery("POST", "", {}, b"{}"), [secret]) == Reason.MISSING_HEADER


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1e9",
        "-1",
        "+1",
        f" {T}",
        f"{T} ",
        f"{T}.0",
        "1_767_225_600",
        "١٧٦٧٢٢٥٦٠٠",
        "9" * 4301,
        "0x10",
        "é",
    ],
)
def test_timestamp_is_bad_header_when_not_plain_digits(text):
    assert reason_of(STAMPED, sent(STAMPED, **{"x-time": text})) == Reason.BAD_HEADER


@pytest.mark.parametrize(
    ("unit", "text", "seconds"),
    [
        ("s", T, 1767225600.0),
        ("ms", "1767225600123", 1767225600.123),
        ("iso", "2026-01-01T00:00:00Z", 1767225600.0),
        ("iso", "2026-01-01T02:00:00.123456789+02:00", 1767225600.123456),
    ],
)
def test_timestamp_is_read_in_its_unit(unit, text, seconds):
    assert Timestamp(header="x", unit=unit).parse(text) == pytest.approx(seconds, abs=1e-5)


@pytest.mark.parametrize(
    "text", ["2026-01-01", "2026-01-01T00:00:00", "2026-W01-1", "2026-02-30T00:00:00Z", T]
)
def test_timestamp_in_iso_needs_a_date_time_and_offset(text):
    with pytest.raises(Rejected, match="bad_header"):
        Timestamp(header="x", unit="iso").parse(text)


@pytest.mark.parametrize(("unit", "text"), [("iso", "9999-12-31T23:59:59.999999Z"), ("ms", "9" * 16)])
def test_moment_beyond_the_calendar_is_refused(unit, text):
    with pytest.raises(Rejected):
        Timestamp(header="x", unit=unit).moment(text)


@pytest.mark.parametrize(
    ("away", "reason"), [(300, None), (301, Reason.STALE), (-300, None), (-301, Reason.STALE)]
)
def test_timestamp_tolerance_is_the_same_in_both_directions(away, reason):
    assert reason_of(STAMPED, sent(STAMPED), now=NOW + timedelta(seconds=away)) == reason


def test_forged_and_stale_delivery_is_bad_signature():
    delivery = sent(STAMPED, secret="other")

    assert reason_of(STAMPED, delivery, now=NOW + timedelta(days=1)) == Reason.BAD_SIGNATURE


RIGHT = LISTED.sign(b"{}", "secret", NOW)["x-sig"].partition("v1=")[2]
WRONG = "0" * 64


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (f"t={T},v1={WRONG},v1={RIGHT}", None),
        (f"v1={RIGHT},t={T}", None),
        (f"t={T}, v1={RIGHT.upper()}", None),
        (f"t={T},v0=x,other,v1={RIGHT},=", None),
        (f"t={T},v1=short,v1={RIGHT}", None),
        (f"t={T}" + f",v1={WRONG}" * 15 + f",v1={RIGHT}", None),
        (f"t={T}" + f",v1={WRONG}" * 16 + f",v1={RIGHT}", Reason.BAD_SIGNATURE),
        (f"t={T},v0={RIGHT}", Reason.BAD_HEADER),
        (f"v1={RIGHT}", Reason.BAD_HEADER),
        (f"t={T},t={T},v1={RIGHT}", Reason.BAD_HEADER),
        (f"t={T},v1={RIGHT[:-2]}", Reason.BAD_HEADER),
        (f"t={T},v1={RIGHT[:32]} {RIGHT[32:]}", Reason.BAD_HEADER),
        (f"t={T};v1={RIGHT}", Reason.BAD_HEADER),
        (f"t={T},v1={WRONG}", Reason.BAD_SIGNATURE),
        (f"t=1767225601,v1={RIGHT}", Reason.BAD_SIGNATURE),
    ],
)
def test_list_of_pairs_is_read_as_the_sender_means_it(value, reason):
    assert reason_of(LISTED, sent(LISTED, **{"x-sig": value})) == reason


DIGEST = bytes(range(32))
BASE64 = b64encode(DIGEST).decode()


@pytest.mark.parametrize(
    ("encoding", "text", "same"),
    [
        ("hex", DIGEST.hex(), True),
        ("hex", DIGEST.hex().upper(), True),
        ("hex", DIGEST.hex(" "), False),
        ("hex", DIGEST.hex() + "00", False),
        ("hex", DIGEST.hex().replace("0", "\u0660"), False),
        ("base64", BASE64, True),
        ("base64", BASE64.rstrip("="), True),
        ("base64", BASE64 + "=", False),
        ("base64", BASE64[:-2] + "9=", False),
        ("base64", BASE64 + "\n", False),
        ("base64", f" {BASE64}", False),
        ("base64", BASE64.lower(), False),
        ("base64url", BASE64.replace("+", "-").replace("/", "_"), True),
        ("base64", "-" + BASE64[1:], False),
        ("base64url", "+" + BASE64[1:], False),
        ("base64", "", False),
    ],
)
def test_signature_has_one_spelling_but_for_case_and_padding(encoding, text, same):
    signs = speller(encoding, 32)

    assert (signs.fold(text) == signs.folded(DIGEST)) == same


@pytest.mark.parametrize(
    ("codec", "secret", "key"),
    [
        ("raw", "whsec_ Zoë", "whsec_ Zoë".encode()),
        ("raw", "\udcff", b"\xff"),
        ("hex", "00fF\n", b"\x00\xff"),
        ("base64", "YWI", b"ab"),
        ("base64", "YWI=", b"ab"),
        ("whsec", "whsec_YWI=", b"ab"),
        ("whsec", "YWI=", b"ab"),
    ],
)
def test_secret_becomes_the_key_by_its_codec(codec, secret, key):
    assert key_of(secret, codec) == key


@pytest.mark.parametrize(
    ("codec", "secret"),
    [
        ("raw", ""), ("raw", " \n"), ("raw", "\ud800"), ("raw", "whsec_"), ("hex", "0"), ("hex", "0 0f"), ("hex", "é"),
        ("base64", "Y!WI"), ("base64", "Y"), ("base64", "="), ("whsec", "whsec_="), ("whsec", "whsec_é"),
    ],
)  # fmt: skip
def test_secret_is_refused_without_being_told(codec, secret):
    with pytest.raises(ValueError, match=r"the secret is not usable; expected .+") as refused:
        key_of(secret, codec)

    assert len(secret.strip()) < 2 or secret not in str(refused.value)


def test_public_key_is_never_taken_for_a_shared_secret():
    scheme = StandardWebhooks(secret="raw")
    public = "whpk_" + b64encode(b"k" * 32).decode()
    forged = sent(StandardWebhooks(secret="raw"), secret=public.removeprefix("whpk_"))

    assert reason_of(scheme, forged, [public]) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("signed", "message"),
    [
        ("{body}", b"B"),
        ("v0:{timestamp}:{body}", b"v0:7:B"),
        ("{method}{url}{body}", b"POST/u?x=1B"),
        ("{header:X-Id}.{{{body}}}", b"i.{B}"),
        ("Zoë {body}", "Zoë B".encode()),
    ],
)
def test_template_fills_in_what_is_signed(signed, message):
    delivery = Delivery("POST", "/u?x=1", {"x-id": "i"}, b"B")

    assert template(signed)(delivery, b"7") == message


@pytest.mark.parametrize("signed", ["{bdy}", "{body", "body}", "{header:}", "{body:x}", "{}"])
def test_template_is_refused_when_a_hole_means_nothing(signed):
    with pytest.raises(ValueError, match=r"[{}]"):
        template(signed)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (1767225600, NOW),
        (T, NOW),
        (1767225600000, NOW),
        (1767225600000000, NOW),
        (1767225600.5, NOW + timedelta(seconds=0.5)),
        ("2026-01-01T00:00:00Z", NOW),
        ("2026-01-01T01:00:00+01:00", NOW),
        ("2026-01-01 00:00:00", NOW),
    ],
)
def test_instant_reads_the_times_that_senders_write(value, moment):
    assert instant(value) == moment


@pytest.mark.parametrize(
    "value", [None, True, "", "yesterday", [], {}, 1e300, -1e300, float("nan"), "9" * 16, 10**400]
)
def test_instant_is_none_for_what_is_no_time(value):
    assert instant(value) is None or value == "9" * 16


@pytest.mark.parametrize(
    ("token", "url", "reason"),
    [
        (Token(query="t"), "https://h/x?a=1&t=secret", None),
        (Token(query="t"), "https://h/x?t=other&t=secret", Reason.BAD_SIGNATURE),
        (Token(query="t"), "https://h/x?t=", Reason.BAD_SIGNATURE),
        (Token(query="t"), "https://h/x", Reason.MISSING_HEADER),
        (Token(query="t"), "https://[h/x?t=secret", Reason.BAD_HEADER),
    ],
)
def test_token_in_the_query_is_compared(token, url, reason):
    assert reason_of(token, Delivery("POST", url, {}, b"")) == reason


def test_token_that_is_not_ascii_is_compared_as_bytes():
    token = Token(header="x-token")
    delivery = sent(token, secret="pässword")

    assert reason_of(token, delivery, ["pässword"]) is None
    assert reason_of(token, replace(delivery, headers={"x-token": "✓"}), ["pässword"]) == Reason.BAD_HEADER


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Hmac(header="x", encoding="base32"),
        lambda: Hmac(header="x", signed="{timestamp}.{body}"),
        lambda: Hmac(header="x", timestamp=Timestamp(header="y")),
        lambda: Token(header="x", query="y"),
        Token,
    ],
)
def test_declaration_that_means_nothing_is_refused(declare):
    with pytest.raises(ValueError, match=r"\w"):
        declare()
