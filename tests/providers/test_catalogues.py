"""Senders judged by what is known of all that they send: `tests/catalogues/`.

A body is made of the vendor's shape, and sent as our module signs it. What is new for each event, and for each attempt,
is what the vendor says (`facts`); of an event without an id only the times move.
"""

import json
from datetime import timedelta

import pytest

from hookonce.providers import Rejected
from hookonce.receiver.samples import files
from tests.support.captured import captured_of
from tests.support.catalogues.facts import FACTS
from tests.support.catalogues.shapes import CATALOGUES, filled, is_time, lacks, read, replaced
from tests.support.for_each import for_each

SENDERS = sorted(path.stem for path in CATALOGUES.glob("*.json"))
LATER = timedelta(seconds=61)
"""Between two changes of one object: longer than the pause before any first retry that shares an id."""
SHORT = timedelta(seconds=30)
OTHER_KINDS = {
    "auth0": "the sample is a batch, and the shape one of its entries",
    "gitlab": "kinds have names that say more than the header",
    "mailgun": "the signature is in the body, and put there when it is sent",
    "meta": "samples are of other products",
    "sanity": "the body is what the webhook's projection makes",
}
"""Senders whose samples have kinds of other names, or bodies of another form: none is compared."""
OTHER_BODIES = {
    "cal_com": {"MEETING_ENDED"},
    "intercom": {"ping", "contact.lead.created", "contact.user.created"},
    "pagerduty": {"pagey.ping"},
    "paypal": {"CUSTOMER.DISPUTE.CREATED"},
    "typeform": {"form_response", "form_response_partial"},
    "zendesk": {
        *("zen:event-type:organization.created", "zen:event-type:ticket.agent_assignment_changed"),
        *(
            "zen:event-type:ticket.comment_added",
            "zen:event-type:ticket.created",
            "zen:event-type:user.created",
        ),
    },
}
"""Kinds whose bodies are not of the one shape that a documented list has."""
SAMPLED = [sender for sender in SENDERS if sender not in OTHER_KINDS]
UNLISTED = {
    "adyen": {"balancePlatform.transfer.created"},
    "azure_devops": {"workitem.created"},
    "calendly": {"routing_form_submission.created"},
    "discord": {"2", "3", "5"},
    "easypost": {"refund.successful"},
    "github": {"issues.closed"},
    "postmark": {"Bounce", "SpamComplaint"},
    "quickbooks": {
        *("qbo.customer.created.v1", "qbo.customer.deleted.v1", "qbo.invoice.created.v1"),
        *("qbo.invoice.updated.v1", "qbo.payment.created.v1"),
    },
    "revenuecat": {"TEST"},
    "slack": {"/track", "block_actions"},
    "square": {"customer.created"},
}
"""Types of samples that are not in the vendor's catalogue."""
NAMELESS = {
    *("asana", "chargebee", "checkout_com", "coinbase_commerce", "dub", "easypost", "github", "gitlab"),
    *("gocardless", "lithic", "mailgun", "onfido", "openai", "paddle_billing", "pagerduty", "paypal"),
    *("plaid", "polar", "resend", "sanity", "shippo", "shopify", "stream", "stripe", "telegram"),
    *("telnyx", "twilio_sendgrid_events", "woocommerce", "workos", "zoom"),
}
"""Senders whose bodies, or those of some kinds, do not say whose they are."""


def events(sender, kind, *, event_id="e-1", later=timedelta(), is_retry=False):
    """The events of a verified delivery of a kind, as the first account that takes it reads them."""
    facts, refusals = FACTS[sender], []
    for case in captured_of(sender):
        if not (case.is_genuine and case.signing):
            continue
        body = filled(read(sender).kinds[kind], "a", case.now + later)
        for place in facts.event:
            replaced(body, place, event_id)
        for place in facts.retry if is_retry else ():
            replaced(body, place, str(int((case.now + SHORT).timestamp() * 1000)))
        try:
            return _read(case, kind, body, event_id, case.now + later + (SHORT if is_retry else timedelta()))
        except (Rejected, ValueError) as error:
            refusals.append(error)
    return pytest.fail(f"{sender} {kind}: {refusals}")


def _read(case, kind, body, event_id, now):
    word = FACTS[case.provider.name].word
    told = kind.partition("#")[0].partition("." if word else "#")[0]
    said = {"event_id": event_id, "type": told, "url": "https://hooks.example.com/hooks/s"}
    delivery = case.provider.delivery(json.dumps(body).encode(), case.signing, now, **said)
    case.provider.verify(delivery, [case.secret], now, **case.fetched)
    return case.events(delivery)


def test_catalogues_name_their_source():
    sources = [set(read(sender).source) for sender in SENDERS]

    assert sources.count({"package", "version", "licence"}) >= 30
    assert sources.count({"package", "version", "licence"}) + sources.count({"documented"}) == len(SENDERS)
    assert set(FACTS) == set(SENDERS)


@for_each(SENDERS, parts=2)
def test_kind_is_one_event_of_the_type_that_one_subscribes_to(sender):
    told = {kind: [event.type for event in events(sender, kind)] for kind in read(sender).kinds}

    assert {kind: types for kind, types in told.items() if not is_told(sender, kind, types)} == {}


def is_told(sender, kind, types):
    """Whether there is one event, of this kind or of what the kind begins with: `push` of `push.main`."""
    kind = kind.partition("#")[0]
    return len(types) == 1 and (sender in OWN_WORDS or kind == types[0] or kind.startswith(f"{types[0]}."))


OWN_WORDS = ("meta", "sanity", "sentry")
"""Senders of which one subscribes to something coarser than the type that we make of it."""


def verdicts(sender, id_of):
    """Return the kinds of which two changes of one object are one event, and those of which two attempts are two."""
    lost, doubled = [], []
    for kind in read(sender).kinds:
        [first], [again], [changed] = (
            events(sender, kind),
            events(sender, kind, is_retry=True),
            events(sender, kind, event_id="e-2", later=LATER),
        )
        doubled += [] if id_of(first) in {id_of(again), *again.retry_ids} else [kind]
        lost += [kind] if id_of(first) == id_of(changed) else []
    return lost, doubled


@for_each(SENDERS, parts=2)
def test_attempts_are_one_event_and_changes_of_one_object_are_two(sender):
    assert verdicts(sender, lambda event: event.id) == ([], [])


@for_each(SENDERS, parts=2)
def test_id_that_leaves_out_what_tells_changes_apart_is_caught(sender):
    own_ids = {place.rpartition(".")[2] for place in FACTS[sender].event}

    lost, _ = verdicts(sender, lambda event: json.dumps(undated(event.data, own_ids), sort_keys=True))

    assert sorted(lost) == sorted(read(sender).kinds)


def undated(data, own_ids):
    """What an event says but for its id, when it happened, and what was signed: all that a careless id is made of."""
    if isinstance(data, dict):
        kept = {key: each for key, each in data.items() if not is_time(key) and key not in own_ids}
        return {key: undated(each, own_ids) for key, each in kept.items() if "signature" not in key.lower()}
    return [undated(each, own_ids) for each in data] if isinstance(data, list) else data


@for_each(SENDERS, parts=2)
def test_ids_are_distinct_across_kinds(sender):
    names_each = FACTS[sender].event
    kinds = [kind for kind in read(sender).kinds if "#" not in kind]
    found = [
        events(sender, kind, event_id=f"e-{at}" if names_each else "e")[0].id for at, kind in enumerate(kinds)
    ]

    assert len(set(found)) == len(found)


@for_each(sorted(set(SENDERS) - NAMELESS), parts=2)
def test_account_is_found_where_the_vendor_names_it(sender):
    assert [kind for kind in read(sender).kinds if not events(sender, kind)[0].account] == []


@for_each(SAMPLED)
def test_samples_have_every_key_of_the_vendor_with_its_type(sender):
    shapes, kinds = read(sender).kinds, set(files.types(sender))
    known = kinds & set(shapes)
    alike = known - OTHER_BODIES.get(sender, set())
    found = {kind: list(lacks(shapes[kind], files.sample(sender, kind).body)) for kind in alike}

    assert {kind: lacking for kind, lacking in found.items() if lacking} == {}
    assert kinds - known == UNLISTED.get(sender, set())


UNTIMED = {
    *("bitbucket_cloud", "finch", "gitea_forgejo", "github", "gitlab", "lithic", "liveblocks", "plaid"),
    *("sentry", "shopify", "telegram", "telnyx", "woocommerce", "zoom"),
}
"""Senders whose deliveries, or those of some kinds, do not say when it happened."""


@for_each(sorted(set(SENDERS) - UNTIMED), parts=2)
def test_time_is_found_where_the_vendor_tells_it(sender):
    assert [kind for kind in read(sender).kinds if not events(sender, kind)[0].occurred_at] == []


@pytest.mark.parametrize(
    ("shape", "value", "lacking"),
    [
        ({"a": "string"}, {}, ["$.a is missing"]),
        ({"a": "string"}, {"a": 1}, ["$.a is no string"]),
        ({"a": "string"}, {"a": None}, ["$.a is no string"]),
        ({"a": "null|string"}, {"a": None}, []),
        ({"a": "null"}, {"a": {"b": 1}}, []),
        ({"a": [{"b": "number"}]}, {"a": [{"b": 1}, {}]}, ["$.a[1].b is missing"]),
        ({"a": [{"b": "number"}]}, {"a": []}, []),
        ({"a": {"b": "number"}}, {"a": []}, ["$.a is no object"]),
    ],
)
def test_shape_says_what_a_body_lacks(shape, value, lacking):
    assert list(lacks(shape, value)) == lacking
