import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers.kit import registry
from hookonce.receiver.samples import documents, edits, files, fresh_ids, moved_times
from tests.support.captured import captured_of
from tests.support.for_each import for_each

NOW = datetime(2031, 5, 6, 7, 8, 9, 654321, tzinfo=UTC)
NOW_UNIX = int(NOW.timestamp())
BODIES = sorted((Path(files.__file__).parent / "bodies").glob("*.json"))
MOST_USED = {
    "github": 14,
    "stripe": 14,
    **dict.fromkeys(
        (
            *(
                "adyen",
                "auth0",
                "bitbucket_cloud",
                "clerk",
                "discord",
                "docusign",
                "gitlab",
                "hubspot",
                "intercom",
            ),
            *("jira", "linear", "mailgun", "meta", "okta", "paddle_billing", "paypal", "postmark", "resend"),
            *("salesforce", "segment", "shopify", "slack", "square", "svix", "telegram", "twilio"),
            *("twilio_sendgrid_events", "twitch", "woocommerce", "workos", "zendesk", "zoom"),
        ),
        5,
    ),
    "calendly": 4,  # it has no more
    "typeform": 2,
}


def samples():
    return [(file.stem, kind) for file in BODIES for kind in files.types(file.stem)]


def fresh(provider, type_, now=NOW, event_id=None):
    return documents.fresh(registry.load(provider), type_, now, event_id)


def load(provider, type_, now=NOW, event_id="evt_test"):
    return fresh(provider, type_, now, event_id).body


def leaves(value, key=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key)
    else:
        yield key, value


@for_each(MOST_USED.items())
def test_most_used_senders_have_the_types_that_are_used(provider, least):
    assert len(files.types(provider)) >= least


@for_each(BODIES)
def test_every_file_is_pretty_printed_and_every_fresh_value_is_in_its_body(file):
    text = file.read_text(encoding="utf-8")
    entries = json.loads(text)

    assert text == json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
    for entry in entries.values():
        assert entry.keys() <= {"id", "fresh", "headers", "json", "form", "text"}
        body = json.dumps([entry.get(form) for form in ("json", "form", "text")], ensure_ascii=False)
        assert [each for each in entry.get("fresh", ()) if str(each) not in body] == []


def test_no_two_samples_are_equal():
    named_in_a_header_that_is_signed = {"contentful", "helpscout", "woocommerce"}
    bodies = [
        (provider, documents.encode([sample.body, dict(sample.headers)]))
        for provider, kind in samples()
        if provider not in named_in_a_header_that_is_signed and (sample := files.sample(provider, kind))
    ]

    assert [provider for (provider, body), count in Counter(bodies).items() if count > 1] == []


@for_each(BODIES)
def test_samples_hold_values_and_no_descriptions_of_them(file):
    """A text once stood there as `{"length": 0}`, and a handler that reads its status never saw one."""
    assert '{"length":0}' not in "".join(file.read_text().split())


@for_each(BODIES)
def test_samples_name_nobody(file):
    text = file.read_text(encoding="utf-8")
    hosts = re.findall(r"[\w.+-]+@([\w-]+(?:\.[\w-]+)+)", text)
    invented = re.compile(r"(.*\.)?example(\.\w+)*|.*\.example|thread\.skype|(users\.noreply\.)?github\.com")

    assert [host for host in hosts if not invented.fullmatch(host)] == []


@for_each(lambda: files.types("stripe"))
def test_stripe_sample_is_a_whole_event_of_its_type(type_):
    document = load("stripe", type_)

    assert document.keys() == {
        *("id", "object", "api_version", "created", "data", "livemode", "pending_webhooks", "request", "type")
    }
    assert (document["object"], document["type"], document["livemode"]) == ("event", type_, False)
    assert (document["created"], document["id"]) == (NOW_UNIX, "evt_test")
    assert type_.split(".")[-2] == document["data"]["object"]["object"].split(".")[-1]


@for_each(lambda: files.types("github"))
def test_github_sample_names_action_repository_and_sender(type_):
    document = load("github", type_)

    assert document.get("action") == (type_.partition(".")[2] or None)
    assert document["repository"]["full_name"] == "sample-org/parcel-tracker"
    assert document["sender"]["login"]


@for_each(lambda: files.types("gitlab"))
def test_gitlab_sample_is_of_the_kind_its_header_names(type_):
    assert load("gitlab", type_)["object_kind"] == type_.removesuffix(" Hook").lower().replace(" ", "_")


TIMES = re.compile(
    r"(At|Date|InSeconds|Time|Timestamp|Created|_at|_at_ms|_attempt|_by|_date|_end|_epoch|_event|_ms|_on|_secs|_since|_start)$"
    r"|(Instant|_time|_timestamp|_ts|_unix|_updated|_created|_anchor)$"
    r"|^(created|updated|date|end|start|time|timestamp|ts|objectGeneration|version)$"
)


@for_each(lambda: [pair for pair in samples() if files.sample(*pair).form != "text"], parts=2)
def test_only_times_move_and_all_by_one_span(provider, type_):
    body = files.sample(provider, type_).body
    then, later = (list(leaves(moved_times.moved(body, seconds))) for seconds in (0, 30 * 3600))

    moved = [(key, old, new) for (key, old), (_, new) in zip(then, later, strict=True) if old != new]
    counted = [(key, float(old), float(new)) for key, old, new in moved if re.fullmatch(r"[0-9.]+", str(old))]

    assert then == list(leaves(body))
    assert [(key, old) for key, old, _ in counted if not TIMES.search(key)] == []
    assert {round(new - old) for _, old, new in counted} <= {
        30 * 3600 * scale for scale in (1, 1000, 1_000_000)
    }


@pytest.mark.parametrize(
    ("written", "moved"),
    [
        (1768478400, 1768478460),
        (1768478400123, 1768478460123),
        (1768478400.5, 1768478460.5),
        ("1768478400", "1768478460"),
        ("1768478400.000419", "1768478460.000419"),
        ("2026-01-15T12:00:00Z", "2026-01-15T12:01:00Z"),
        ("2026-01-15T12:00:00.123456789+00:00", "2026-01-15T12:01:00.123456789+00:00"),
        ("2026-01-15T12:00:00+0000", "2026-01-15T12:01:00+0000"),
        ("2026-01-15 12:00:00 UTC", "2026-01-15 12:01:00 UTC"),
        ("2026-01-15 12:00:00", "2026-01-15 12:01:00"),
        ("2026-01-15T12:00:00", "2026-01-15T12:01:00"),
        ("Thu, 15 Jan 2026 12:00:00 +0000", "Thu, 15 Jan 2026 12:01:00 +0000"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("2026-01-15", "2026-01-15"),
        (3000, 3000),
        ("order-7", "order-7"),
        (True, True),
    ],
)
def test_times_move_in_the_form_that_the_sender_writes(written, moved):
    assert moved_times.moved({"a": [written]}, 60) == {"a": [moved]}


@pytest.mark.parametrize(
    "value",
    [
        *(
            "evt_1NG8Du2eZvKYlo2C",
            "msg_2b7Vq0kYw1",
            "WH-19973546LX9017143",
            "4f0c7a52-9f3e-4f57-8a6d-1b2c3d4e5f60",
        ),
        *(
            "709d658dc5b6d6afcd46049c2f332ee3f515a67d",
            "SM0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "01DB3RCDBV0M2E4NAQ3VJXYGVT",
        ),
        *(
            "1200098765432101",
            1009123456,
            "4F0C7A52-9F3E-4F57-8A6D-1B2C3D4E5F60",
            "urn:li:share:7100000000000000001",
        ),
    ],
)
def test_another_id_has_the_same_form_and_is_another(value):
    made = {fresh_ids.reshaped(value) for _ in range(20)}

    assert len(made - {value}) == 20
    assert {(type(each), len(str(each))) for each in made} == {(type(value), len(str(value)))}
    assert {re.sub(r"[0-9a-zA-Z]", "", str(each)) for each in made} == {
        re.sub(r"[0-9a-zA-Z]", "", str(value))
    }
    assert {str(each).upper() == each for each in made} == {str(value).upper() == value}
    assert {str(each).isdecimal() for each in made} == {str(value).isdecimal()}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("evt_1NG8Du2eZvKYlo2C", r"evt_\d[A-Z]{2}\d[A-Z][a-z]\d[a-z][A-Z][a-z][A-Z]{2}[a-z]{2}\d[A-Z]"),
        ("709d658dc5b6d6afcd46049c2f332ee3f515a67d", r"[0-9a-f]{40}"),
        ("SM0f1e2d3c4b5a69788796a5b4c3d2e1f0", r"SM[0-9a-f]{32}"),
        ("urn:li:share:7100000000000000001", r"urn:li:share:7\d{18}"),
        (1009123456, r"1\d{9}"),
    ],
)
def test_another_id_keeps_what_a_prefix_says(value, form):
    assert re.fullmatch(form, str(fresh_ids.reshaped(value)))


def test_an_id_is_another_one_wherever_it_stands():
    body = {
        "id": "evt_12345678",
        "url": "https://example.com/evt_12345678/x",
        "n": 7,
        "yes": True,
        "list": [12345678],
    }

    made = fresh_ids.replaced(body, {"evt_12345678": "evt_87654321", 12345678: 99999999, 7: 8})

    assert made == {
        "id": "evt_87654321",
        "url": "https://example.com/evt_87654321/x",
        "n": 8,
        "yes": True,
        "list": [99999999],
    }


def test_provider_of_somebody_else_gets_what_it_can_make_or_a_minimal_body():
    hmac = captured_of("hmac")[0].provider

    assert files.types("hmac") == []
    assert hmac.sample is not None
    assert documents.fresh(hmac, "a.b", NOW, "evt_1").body == json.loads(hmac.sample("evt_1", "a.b"))
    assert documents.fresh(replace(hmac, sample=None), None, NOW, "evt_1").body == {
        "id": "evt_1",
        "type": "test",
        "created": NOW_UNIX,
    }


def test_no_name_leads_out_of_the_package():
    assert files.types("../bodies/stripe") == []


def test_id_that_its_sender_can_not_have_is_refused():
    with pytest.raises(
        ValueError, match="'evt_1' can't be the id of a message: its sender's ids are numbers"
    ):
        fresh("telegram", "message", event_id="evt_1")

    assert fresh("telegram", "message", event_id="100009999").body["update_id"] == 100009999


@pytest.mark.parametrize(
    ("provider", "type_", "message"),
    [
        ("stripe", "invoice.payed", "no sample 'invoice.payed' for stripe; did you mean 'invoice.paid'? "),
        ("gitlab", "push", "no sample 'push' for gitlab; did you mean 'Push Hook'? "),
        ("github", "workflow", "no sample 'workflow' for github; did you mean 'workflow_job.completed'? "),
        (
            "zendesk",
            "ticket.created",
            "no sample 'ticket.created' for zendesk; did you mean 'zen:event-type:ticket.created'? ",
        ),
        ("slack", "zzz", "no sample 'zzz' for slack; "),
        ("slack", "", "no sample '' for slack; "),
    ],
)
def test_unknown_type_is_an_error_that_names_the_nearest(provider, type_, message):
    with pytest.raises(LookupError) as caught:
        fresh(provider, type_)

    assert str(caught.value) == message + "`hookonce trigger --list` shows all"


def test_form_is_edited_as_json_and_sent_as_a_form():
    document = fresh("slack", "block_actions")

    document.set("payload.user.username=bob")
    document.edited(document.text.replace('"general"', '"random"'))

    [(name, value)] = re.findall(r"(\w+)=(.*)", document.encoded().decode())
    assert name == "payload"
    assert "%22username%22%3A%22bob%22" in value
    assert "%22random%22" in value


def test_text_is_edited_as_it_is_and_has_no_paths():
    document = fresh("salesforce", "Lead")

    document.edited(document.text.replace("Example Org", "Example GmbH"))

    assert b"Example GmbH" in document.encoded()
    with pytest.raises(ValueError, match="not JSON and has no paths; use --edit"):
        document.set("a=1")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b", {"a": {}, "list": [1, {"x": 2}]}),
        ("list.0", {"a": {"b": 1}, "list": [{"x": 2}]}),
        ("list.1.x", {"a": {"b": 1}, "list": [1, {}]}),
        ("list[1].x", {"a": {"b": 1}, "list": [1, {}]}),
        ("list", {"a": {"b": 1}}),
    ],
)
def test_remove_path_removes_what_the_path_names(path, expected):
    document = {"a": {"b": 1}, "list": [1, {"x": 2}]}

    edits.remove_path(document, path)

    assert document == expected


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("c", "cannot remove c: the body has no 'c'; it has a, list"),
        ("a.c", "cannot remove a.c: a has no 'c'; it has b"),
        ("a.b.c", "cannot remove a.b.c: a.b has no 'c'; it is no object or list"),
        ("list.2", "cannot remove list.2: list has no '2'; it is a list of 2"),
        ("a..b", "'a..b' names nothing; write a path, as in data.object.amount"),
    ],
)
def test_remove_path_refuses_what_is_not_there(path, message):
    document = {"a": {"b": 1}, "list": [1, {"x": 2}]}

    with pytest.raises(ValueError, match=re.escape(message) + "$"):
        edits.remove_path(document, path)

    assert document == {"a": {"b": 1}, "list": [1, {"x": 2}]}


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("a.b=500", {"a": {"b": 500}, "list": [1, {"x": 2}], "none": None}),
        ("a.b=gold plan", {"a": {"b": "gold plan"}, "list": [1, {"x": 2}], "none": None}),
        ("a.b=", {"a": {"b": ""}, "list": [1, {"x": 2}], "none": None}),
        ("a.b=k=v", {"a": {"b": "k=v"}, "list": [1, {"x": 2}], "none": None}),
        ('a.b="500"', {"a": {"b": "500"}, "list": [1, {"x": 2}], "none": None}),
        ("a.b=null", {"a": {"b": None}, "list": [1, {"x": 2}], "none": None}),
        ("a.b=NaN", {"a": {"b": "NaN"}, "list": [1, {"x": 2}], "none": None}),
        ("a.b=1e999", {"a": {"b": "1e999"}, "list": [1, {"x": 2}], "none": None}),
        ("a=[true]", {"a": [True], "list": [1, {"x": 2}], "none": None}),
        ("a.c.d=1", {"a": {"b": 1, "c": {"d": 1}}, "list": [1, {"x": 2}], "none": None}),
        ("a.0=1", {"a": {"b": 1, "0": 1}, "list": [1, {"x": 2}], "none": None}),
        ("list.0=9", {"a": {"b": 1}, "list": [9, {"x": 2}], "none": None}),
        ("list.1.x=9", {"a": {"b": 1}, "list": [1, {"x": 9}], "none": None}),
        ("list.2.y=9", {"a": {"b": 1}, "list": [1, {"x": 2}, {"y": 9}], "none": None}),
        ("none.x=1", {"a": {"b": 1}, "list": [1, {"x": 2}], "none": {"x": 1}}),
    ],
)
def test_set_path_sets_what_the_path_names(assignment, expected):
    document = {"a": {"b": 1}, "list": [1, {"x": 2}], "none": None}

    edits.set_path(document, assignment)

    assert document == expected
    assert json.loads(documents.encode(document)) == expected


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("a.b", "'a.b' sets nothing; write path=value, as in data.object.amount=500"),
        ("=1", "'=1' sets nothing; write path=value, as in data.object.amount=500"),
        ("a..b=1", "'a..b=1' sets nothing; write path=value, as in data.object.amount=500"),
        ("a.b.c=1", "cannot set a.b.c: a.b is 1, not an object or a list"),
        ("list.3=1", "cannot set list.3: list is a list of 2; write an index from 0 to 2, not '3'"),
        ("list.-1=1", "cannot set list.-1: list is a list of 2; write an index from 0 to 2, not '-1'"),
        ("list.x=1", "cannot set list.x: list is a list of 2; write an index from 0 to 2, not 'x'"),
    ],
)
def test_set_path_refuses_what_cannot_be(assignment, message):
    document = {"a": {"b": 1}, "list": [1, {"x": 2}]}

    with pytest.raises(ValueError, match=re.escape(message) + "$"):
        edits.set_path(document, assignment)

    assert document == {"a": {"b": 1}, "list": [1, {"x": 2}]}


@pytest.mark.parametrize("document", [[1], 7, "text"])
def test_set_path_says_when_the_body_itself_is_no_object(document):
    with pytest.raises(ValueError, match="the body is"):
        edits.set_path(document, "a.b=1")


def test_encode_can_send_anything_the_shell_passes():
    assert documents.encode({"a": "\udcff é"}) == b'{"a":"\\udcff \\u00e9"}'
