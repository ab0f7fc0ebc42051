import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit import registry
from hookonce.receiver.dev import samples

NOW = datetime(2031, 5, 6, 7, 8, 9, 654321, tzinfo=UTC)
NOW_UNIX = int(NOW.timestamp())
COUNTS = dict.fromkeys(sorted(folder.name for folder in Path(samples.__file__).parent.glob("[a-z]*/")), 1) | {
    "github": 14,
    "gitlab": 4,
    "shopify": 5,
    "slack": 2,
    "standard_webhooks": 2,
    "stripe": 14,
}
ALL = [(provider, type_) for provider in COUNTS for type_ in samples.types(provider)]
IDS_OF = {"stripe": "id", "slack": "event_id"}


def load(provider, type_, event_id="evt_test", now=NOW):
    return json.loads(samples.body(provider, type_, event_id=event_id, now=now))


def leaves(value, key=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key)
    else:
        yield key, value


@pytest.mark.parametrize(("provider", "least"), COUNTS.items())
def test_provider_has_its_types_sorted_and_without_repeats(provider, least):
    types = samples.types(provider)

    assert len(types) >= least
    assert types == sorted(set(types))


def test_every_file_is_a_pretty_printed_sample():
    written = list(Path(samples.__file__).parent.glob("*/*.json"))

    for file in written:
        text = file.read_text(encoding="utf-8")
        assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n", file.name
    assert len(written) == len(ALL)


@pytest.mark.parametrize(("provider", "type_"), ALL)
def test_sample_is_a_compact_object_of_sane_size(provider, type_):
    body = samples.body(provider, type_, event_id="evt_test", now=NOW)

    assert isinstance(json.loads(body), dict)
    assert body == samples.encode(json.loads(body))
    assert 90 < len(body) < 7_000  # Viber says no more of what was delivered


def test_no_two_samples_are_equal():
    bodies = {samples.body(provider, type_, event_id="evt_test", now=NOW) for provider, type_ in ALL}

    assert len(bodies) == len(ALL)


@pytest.mark.parametrize(("provider", "type_"), [pair for pair in ALL if pair[0] in IDS_OF])
def test_sample_carries_the_event_id_where_the_sender_puts_it(provider, type_):
    document = load(provider, type_, event_id="evt_fresh")

    assert document[IDS_OF[provider]] == "evt_fresh"


BY_BODY = (
    *(
        "alchemy",
        "azure_devops",
        "checkr",
        "coinbase_cdp",
        "datadog",
        "deepgram",
        "fastspring",
        "flutterwave",
        "gusto",
    ),
    *("lever", "mailersend", "mailtrap", "mercury", "pipedrive", "shortcut", "tally"),
)


@pytest.mark.parametrize(("provider", "type_"), [pair for pair in ALL if pair[0] in BY_BODY])
def test_sample_is_an_event_of_its_type_with_the_id_it_was_told(provider, type_):
    body = samples.body(provider, type_, event_id="evt_fresh", now=NOW)
    [event] = registry.load(provider).events(Delivery("POST", "", {}, body))

    assert (event.id, event.type) == ("evt_fresh", type_)


@pytest.mark.parametrize("type_", samples.types("stripe"))
def test_stripe_sample_is_a_whole_event_of_its_type(type_):
    document = load("stripe", type_)

    assert document.keys() == {
        *("id", "object", "api_version", "created", "data", "livemode", "pending_webhooks", "request", "type")
    }
    assert (document["object"], document["type"], document["livemode"]) == ("event", type_, False)
    assert document["created"] == NOW_UNIX
    assert type_.split(".")[-2] == document["data"]["object"]["object"].split(".")[-1]


@pytest.mark.parametrize("type_", samples.types("slack"))
def test_slack_sample_is_an_event_callback_of_its_type(type_):
    document = load("slack", type_)

    assert document["type"] == "event_callback"
    assert document["event"]["type"] == type_
    assert document["event_time"] == NOW_UNIX
    assert document["event"]["event_ts"] == f"{NOW_UNIX}.000419"


@pytest.mark.parametrize("type_", samples.types("github"))
def test_github_sample_names_action_repository_and_sender(type_):
    document = load("github", type_)

    assert document.get("action") == (type_.partition(".")[2] or None)
    assert document["repository"]["full_name"] == "sample-org/parcel-tracker"
    assert document["sender"]["login"]


@pytest.mark.parametrize("type_", samples.types("gitlab"))
def test_gitlab_sample_is_of_the_kind_its_header_names(type_):
    assert load("gitlab", type_)["object_kind"] == type_.removesuffix(" Hook").lower().replace(" ", "_")


@pytest.mark.parametrize("type_", samples.types("standard_webhooks"))
def test_standard_webhooks_sample_has_type_and_timestamp(type_):
    document = load("standard-webhooks", type_)

    assert (document["type"], document["timestamp"]) == (type_, "2031-05-06T07:08:09.000Z")


@pytest.mark.parametrize(("provider", "type_"), ALL)
def test_only_times_move_and_all_by_one_span(provider, type_):
    then, later = (list(leaves(load(provider, type_, now=now))) for now in (NOW, NOW + timedelta(hours=30)))

    moved = [(key, old, new) for (key, old), (_, new) in zip(then, later, strict=True) if old != new]
    times = re.compile(
        r"(_at|_ts|_time|_date|_end|_start|_finished|_modified|At|Time|Date|InSeconds)$"
        r"|^(created|updated|last_updated|date|timestamp|time|ts|start|end|available_on|due_by|billing_cycle_anchor|next_payment_attempt)$"
    )

    assert [key for key, _, _ in moved if not times.search(key)] == []
    assert {new - old for _, old, new in moved if isinstance(old, int)} <= {30 * 3600, 30 * 3600 * 1000}


@pytest.mark.parametrize(
    ("provider", "type_", "read", "expected"),
    [
        ("shopify", "orders/create", lambda d: d["created_at"], "2031-05-06T07:08:09+00:00"),
        ("github", "issues.opened", lambda d: d["issue"]["created_at"], "2031-05-06T07:08:09Z"),
        ("gitlab", "Issue Hook", lambda d: d["object_attributes"]["created_at"], "2031-05-06 07:08:09 UTC"),
        ("github", "push", lambda d: d["repository"]["pushed_at"], NOW_UNIX),
    ],
)
def test_times_keep_the_form_the_sender_writes(provider, type_, read, expected):
    assert read(load(provider, type_)) == expected


@pytest.mark.parametrize("provider", COUNTS)
def test_body_is_the_usual_one_when_no_type_is_named(provider):
    usual = samples.body(provider, None, event_id="evt_test", now=NOW)

    assert usual in [samples.body(provider, t, event_id="evt_test", now=NOW) for t in samples.types(provider)]


def test_provider_without_samples_gets_a_minimal_body():
    assert samples.types("hmac") == []
    assert load("hmac", None) == {"id": "evt_test", "type": "test", "created": NOW_UNIX}
    assert load("../stripe", "a.b") == {"id": "evt_test", "type": "a.b", "created": NOW_UNIX}


@pytest.mark.parametrize(
    ("provider", "type_", "message"),
    [
        ("stripe", "invoice.payed", "no sample 'invoice.payed' for stripe; did you mean 'invoice.paid'? "),
        ("gitlab", "push", "no sample 'push' for gitlab; did you mean 'Push Hook'? "),
        ("github", "workflow", "no sample 'workflow' for github; did you mean 'workflow_job.completed'? "),
        ("slack", "zzz", "no sample 'zzz' for slack; "),
        ("slack", "", "no sample '' for slack; "),
    ],
)
def test_unknown_type_is_an_error_that_names_the_nearest(provider, type_, message):
    with pytest.raises(LookupError) as caught:
        load(provider, type_)

    assert str(caught.value) == message + "`hookonce trigger --list` shows all"


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

    samples.set_path(document, assignment)

    assert document == expected
    assert json.loads(samples.encode(document)) == expected


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
        samples.set_path(document, assignment)

    assert document == {"a": {"b": 1}, "list": [1, {"x": 2}]}


@pytest.mark.parametrize("document", [[1], 7, "text"])
def test_set_path_says_when_the_body_itself_is_no_object(document):
    with pytest.raises(ValueError, match="the body is"):
        samples.set_path(document, "a.b=1")


def test_encode_can_send_anything_the_shell_passes():
    assert samples.encode({"a": "\udcff é"}) == b'{"a":"\\udcff \\u00e9"}'
