"""Mistakes that providers have been found with; the shared contract must catch every one."""

import hashlib
import hmac
import json
import uuid
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.providers.kit import (
    Hmac,
    body_digest,
    field,
    first,
    fixed,
    form_body,
    header,
    json_body,
    one_event,
    query,
)
from hookonce.providers.kit.conformance import CHECKS, cases
from hookonce.providers.kit.conformance.unsigned_ids import check_id_is_signed

HERE = Path(__file__).parent
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def refuse(reason, detail="no"):
    raise Rejected(reason, detail)


def stripe_parts(delivery):
    pairs = [pair.split("=", 1) for pair in delivery.headers["stripe-signature"].split(",") if "=" in pair]
    times = [value for key, value in pairs if key == "t"]
    return times[0] if len(times) == 1 else "", [value for key, value in pairs if key == "v1"]


def stripe_verify(delivery, secrets, now, body=None, **bugs):
    """A hand-written Stripe verifier that is right, but for the bugs it is asked to have."""
    secrets = [secret for secret in secrets if secret.strip()] or refuse(Reason.NO_SECRET)
    if "stripe-signature" not in delivery.headers:
        refuse(Reason.MISSING_HEADER)
    t, given = stripe_parts(delivery)
    if not (t.isascii() and t.isdigit() and len(t) < 12 and given):
        refuse(Reason.BAD_HEADER)
    length = bugs.get("compared", 64)
    message = t.encode() + b"." + (delivery.body if body is None else body)
    rights = [hmac.new(secret.encode(), message, hashlib.sha256).hexdigest() for secret in secrets]
    if not any(
        right[:length].encode() == text[:length].encode("utf-8", "surrogatepass")
        for right in rights
        for text in given[:16]
    ):
        refuse(Reason.BAD_SIGNATURE, bugs.get("detail", lambda *_: "no")(secrets, rights))
    away = now.timestamp() - int(t)
    if away > bugs.get("past", 300) or away < -bugs.get("future", 300):
        refuse(Reason.STALE)


def accepts_empty_secrets(delivery, secrets, now):
    if any(secret.strip() for secret in secrets):
        stripe_verify(delivery, secrets, now)


def uses_the_empty_secret(delivery, secrets, now):
    stripe_verify(delivery, [secret or "\0" for secret in secrets] or ["\0"], now)


def compares_a_prefix(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, compared=40)


def ignores_the_time(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, past=1e12, future=1e12)


def lets_the_future_in(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, future=1e12)


def tolerates_too_much(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, past=3600, future=3600)


def tolerates_too_little(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, past=30, future=30)


def verifies_json_written_anew(delivery, secrets, now):
    body = json.dumps(json.loads(delivery.body), separators=(",", ":")).encode()
    stripe_verify(delivery, secrets, now, body=body)


def verifies_the_text_stripped(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, body=delivery.body.strip())


def verifies_a_lossy_text(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, body=delivery.body.decode("ascii", "ignore").encode())


UNDERSTOOD = {bytes(c.delivery.body[:8]): c.delivery.body for c in cases(HERE / "stripe") if c.is_genuine}


def verifies_only_what_it_understands(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, body=UNDERSTOOD.get(delivery.body[:8], delivery.body))


def uses_only_the_first_secret(delivery, secrets, now):
    stripe_verify(delivery, secrets[:1], now)


def uses_only_the_last_secret(delivery, secrets, now):
    stripe_verify(delivery, secrets[-1:], now)


def looks_at_the_time_first(delivery, secrets, now):
    if delivery.headers.get("stripe-signature", "").startswith("t=1"):
        t = stripe_parts(delivery)[0]
        if t.isdigit() and abs(now.timestamp() - int(t)) > 300:
            refuse(Reason.STALE)
    stripe_verify(delivery, secrets, now)


def tells_the_secret(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, detail=lambda secrets, _: f"does not fit {secrets[0]}")


def tells_the_right_signature(delivery, secrets, now):
    stripe_verify(delivery, secrets, now, detail=lambda _, rights: f"expected {rights[0]}")


def tells_the_body(delivery, secrets, now):
    try:
        stripe_verify(delivery, secrets, now)
    except Rejected as error:
        raise Rejected(error.reason, delivery.body.decode("latin-1")) from None


def raises_keyerror_without_header(delivery, secrets, now):
    delivery.headers["stripe-signature"]
    stripe_verify(delivery, secrets, now)


def raises_valueerror_on_junk(delivery, secrets, now):
    int(stripe_parts(delivery)[0] if "stripe-signature" in delivery.headers else 0)
    stripe_verify(delivery, secrets, now)


def accepts_unsigned_deliveries(delivery, secrets, now):
    if "stripe-signature" in delivery.headers or not secrets:
        stripe_verify(delivery, secrets, now)


def calls_everything_bad_signature(delivery, secrets, now):
    try:
        stripe_verify(delivery, secrets, now)
    except Rejected:
        raise Rejected(Reason.BAD_SIGNATURE, "no") from None


def verifies_nothing(_, secrets, __):
    if not any(secret.strip() for secret in secrets):
        refuse(Reason.NO_SECRET)


def takes_v0_for_v1(delivery, secrets, now):
    value = delivery.headers.get("stripe-signature", "").replace("v0=", "v1=")
    headers = {**delivery.headers, "stripe-signature": value} if value else {}
    stripe_verify(replace(delivery, headers=headers), secrets, now)


STRIPE_VERIFIERS = [
    accepts_empty_secrets,
    uses_the_empty_secret,
    compares_a_prefix,
    ignores_the_time,
    lets_the_future_in,
    tolerates_too_much,
    tolerates_too_little,
    verifies_json_written_anew,
    verifies_the_text_stripped,
    verifies_a_lossy_text,
    verifies_only_what_it_understands,
    uses_only_the_first_secret,
    uses_only_the_last_secret,
    looks_at_the_time_first,
    tells_the_secret,
    tells_the_right_signature,
    tells_the_body,
    raises_keyerror_without_header,
    raises_valueerror_on_junk,
    accepts_unsigned_deliveries,
    calls_everything_bad_signature,
    verifies_nothing,
    takes_v0_for_v1,
]


def random_ids(case):
    return lambda delivery: [replace(e, id=str(uuid.uuid4())) for e in case.provider.events(delivery)]


def numeric_ids(case):
    return lambda delivery: [replace(e, id=int(hashlib.sha256(delivery.body).hexdigest(), 16))
                             for e in case.provider.events(delivery)]  # fmt: skip


def naive_times(case):
    return lambda delivery: [replace(e, occurred_at=datetime(2026, 1, 1))  # noqa: DTZ001  the bug
                             for e in case.provider.events(delivery)]  # fmt: skip


def no_events(_):
    return lambda _: []


def unchecked_json(case):
    def events(delivery):
        data = json.loads(delivery.body)
        return [replace(e, type=data["type"]) for e in case.provider.events(delivery)]

    return events


def booleans_as_ids(case):
    def events(delivery):
        try:
            return case.provider.events(delivery)
        except Rejected:
            return [replace(case.provider.events(case.delivery)[0], id=True)]

    return events


EVENT_READERS = [random_ids, numeric_ids, naive_times, no_events, unchecked_json, booleans_as_ids]


def caught(mutants):
    """The checks that complain about any of these cases."""
    return {check.__name__ for case in mutants for check in CHECKS if complains(check, case)}


def is_caught(mutants):
    return any(complains(check, case) for case in mutants for check in CHECKS)


def complains(check, case):
    try:
        check(case)
    except AssertionError:
        return True
    return False


def mutated(provider, **changes):
    return [replace(case, provider=replace(case.provider, **changes)) for case in cases(HERE / provider)]


def test_contract_accepts_the_verifier_without_bugs():
    assert not caught(mutated("stripe", verify=stripe_verify))


@pytest.mark.parametrize("bug", STRIPE_VERIFIERS, ids=lambda bug: bug.__name__)
def test_contract_catches_a_verifier_that(bug):
    assert is_caught(mutated("stripe", verify=bug))


@pytest.mark.parametrize("bug", EVENT_READERS, ids=lambda bug: bug.__name__)
def test_contract_catches_a_reader_with(bug):
    mutants = [replace(c, provider=replace(c.provider, events=bug(c))) for c in cases(HERE / "stripe")]

    assert is_caught(mutants)


def test_contract_catches_github_accepting_sha1():
    [genuine] = [case for case in cases(HERE / "github") if case.name.endswith("json") and case.is_genuine][
        :1
    ]

    def verify(delivery, secrets, now):
        given = delivery.headers.get("x-hub-signature", "").removeprefix("sha1=")
        rights = [
            hmac.new(secret.encode(), delivery.body, "sha1").hexdigest() for secret in secrets if secret
        ]
        if given.encode() not in [right.encode() for right in rights]:
            genuine.provider.verify(delivery, secrets, now)

    assert "check_refused" in caught(mutated("github", verify=verify))


def test_contract_catches_base64_compared_after_lenient_decoding():
    def verify(delivery, secrets, now):
        del now
        secrets = [secret for secret in secrets if secret.strip()] or refuse(Reason.NO_SECRET)
        names = ("x-shopify-hmac-sha256", "shopify-hmac-sha256")
        given = next((delivery.headers[name] for name in names if name in delivery.headers), None)
        if given is None:
            refuse(Reason.MISSING_HEADER)
        rights = [hmac.new(secret.encode(), delivery.body, "sha256").digest() for secret in secrets]
        texts = [b64encode(right).decode()[:42] for right in rights]
        if given[:42] not in texts:
            refuse(Reason.BAD_SIGNATURE)

    assert caught(mutated("shopify", verify=verify)) == {"check_changed_signature"}


def github(**changes):
    return [case for case in mutated("github", **changes) if case.is_genuine]


def test_contract_catches_a_claim_that_the_header_of_the_id_is_signed():
    assert caught(github(id_is_signed=True)) == {"check_id_is_signed"}


def test_contract_catches_a_claim_that_a_tokens_body_is_signed():
    assert "check_id_is_signed" in caught(mutated("telegram", id_is_signed=True))


def id_in_a_header(_):
    """Right for every delivery that was captured: this sender never sends the header."""
    given = header("x-event-id")
    return one_event(id=first(given, field("$.id")), type=field("$.type"))


def id_in_the_query(_):
    return one_event(id=first(query("event"), field("$.id")), type=field("$.type"))


def body_read_by_its_content_type(_):
    def read(delivery):
        return json_body(delivery) if "json" in delivery.headers.get("content-type", "json") else {}

    return one_event(
        id=first(field("$.id"), body_digest()), type=first(field("$.type"), fixed("t")), read=read
    )


def id_by_the_method(case):
    def events(delivery):
        return [replace(event, id=delivery.method + event.id) for event in case.provider.events(delivery)]

    return events


def batch_by_an_unsigned_header(case):
    def events(delivery):
        found = case.provider.events(delivery)
        is_batch = "x-batch" in delivery.headers
        return [replace(event, id=event.id + "-0") for event in found] if is_batch else found

    return events


@pytest.mark.parametrize(
    "bug",
    [
        id_in_a_header,
        id_in_the_query,
        body_read_by_its_content_type,
        id_by_the_method,
        batch_by_an_unsigned_header,
    ],
    ids=lambda bug: bug.__name__,
)
def test_contract_catches_an_id_that_is_not_signed_with(bug):
    genuine = [case for case in mutated("stripe", methods=("POST", "PUT")) if case.is_genuine]
    genuine += [
        replace(case, delivery=replace(case.delivery, url="https://in.example/?event=e1")) for case in genuine
    ]

    assert "check_id_is_signed" in caught(
        replace(case, provider=replace(case.provider, events=bug(case))) for case in genuine
    )


def test_contract_catches_an_id_that_is_the_fingerprint_of_a_form_signed_by_its_fields():
    scheme = Hmac(header="x-signature", signed="{url}{params}")
    body, url = b"To=1&From=2&Text=a+b", "https://in.example/"
    headers = scheme.sign(body, "secret", NOW, url=url)
    events = one_event(id=body_digest(), type=fixed("t"), read=form_body)
    [case, *_] = github(verify=scheme.verify, sign=scheme.sign, events=events, id_is_signed=True)
    delivery = Delivery("POST", url, headers, body)

    with pytest.raises(AssertionError, match="accepted with another event id"):
        check_id_is_signed(replace(case, delivery=delivery, secret="secret", now=NOW))


MISSPELT = '''"""Acme signs the body."""

from hookonce.providers.kit import Hmac, Sender, header, one_event

scheme = Hmac(header="x-acme-signature")
verify = scheme.verify
sign = scheme.sign
events = one_event(id=header("x-acme-id"), type=header("x-acme-type"))
sender = Sender(id_is_sigend=False, retry_horizon=None)
'''


def test_misspelt_declaration_does_not_reach_the_contract(tmp_path):
    (tmp_path / "acme.py").write_text(MISSPELT)
    (tmp_path / "one.json").write_text('{"secret": "s", "headers": {}, "body": ""}')

    with pytest.raises(
        ValueError, match=r"provider 'acme' \(.*acme\.py\) can't be imported: .*'id_is_sigend'"
    ):
        cases(tmp_path, "acme", [str(tmp_path)])


def answers_any_probe(delivery, _):
    try:
        return Reply(body=json.dumps({"challenge": json.loads(delivery.body)["challenge"]}).encode())
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def answers_with_a_signature(delivery, secrets):
    challenge = json.loads(delivery.body)["challenge"] if b"challenge" in delivery.body else ""
    if not challenge:
        return None
    signature = hmac.new(secrets[0].encode(), b"v0:1767225600:" + challenge.encode(), "sha256").hexdigest()
    return Reply(body=json.dumps({"challenge": challenge, "signature": signature}).encode())


def answers_everything(delivery, _):
    return Reply(body=delivery.body)


def answers_nothing(_, __):
    return None


@pytest.mark.parametrize(
    "bug", [answers_any_probe, answers_with_a_signature, answers_everything, answers_nothing]
)
def test_contract_catches_a_handshake_that(bug):
    assert "check_handshake" in caught(mutated("slack", handshake=bug))


def signs_at_random(case):
    return lambda *args, **said: {**case.provider.sign(*args, **said), "x-nonce": str(uuid.uuid4())}


def signs_with_the_wrong_clock(case):
    return lambda body, secret, _, **said: case.provider.sign(
        body, secret, datetime(1999, 1, 1, tzinfo=UTC), **said
    )


def signs_upper_case_names(case):
    return lambda *args, **said: {
        key.upper(): text for key, text in case.provider.sign(*args, **said).items()
    }


def forgets_the_event_id(case):
    def sign(body, secret, now, **said):
        return case.provider.sign(body, secret, now, **(said | {"event_id": "always-the-same"}))

    return sign


@pytest.mark.parametrize(
    ("provider", "bug"),
    [
        ("stripe", signs_at_random),
        ("stripe", signs_with_the_wrong_clock),
        ("stripe", signs_upper_case_names),
        ("github", forgets_the_event_id),
    ],
)
def test_contract_catches_a_signer_that(provider, bug):
    mutants = [replace(c, provider=replace(c.provider, sign=bug(c))) for c in cases(HERE / provider)]

    assert is_caught(mutants)


TWINS = {"signed": "signed/ed25519-list, signed by the kit", "jwt": "jwt/rs256-body-hash, signed by the kit"}


def without_looking(detail):
    """A verifier that passes over what is refused with these words."""

    def wrap(verify):
        def lenient(delivery, secrets, now, **keys):
            try:
                verify(delivery, secrets, now, **keys)
            except Rejected as error:
                if detail not in error.detail:
                    raise

        return lenient

    return wrap


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("signed", "no key of this source made the signature"),
        ("signed", "the signed time is"),
        ("signed", "no usable public key"),
        ("jwt", "no key of this source signed the token"),
        ("jwt", "the token's h is not this body's"),
        ("jwt", "the token is no longer valid"),
        ("jwt", "no usable public key"),
    ],
)
def test_contract_catches_what_a_key_pair_was_not_asked(name, detail):
    case = next(each for each in cases(HERE / name) if each.name == TWINS[name])
    provider = case.provider
    lenient = replace(case, provider=replace(provider, verify=without_looking(detail)(provider.verify)))

    assert [complaint for check in CHECKS if (complaint := complained(check, case))] == []
    assert any(complained(check, lenient) for check in CHECKS)


def complained(check, case):
    try:
        check(case)
    except AssertionError as complaint:
        return str(complaint) or "it does not"
    return None
