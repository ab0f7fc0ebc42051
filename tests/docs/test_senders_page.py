from datetime import timedelta

import pytest

from hookonce.providers.kit.registry import names
from tests.support import senders_page
from tests.support.for_each import for_each


def test_page_of_senders_says_what_the_modules_say():
    assert senders_page.PAGE.read_text() == senders_page.page(), "run: make docs"


@pytest.mark.parametrize(
    ("name", "variable", "source"),
    [
        ("stripe", "`STRIPE_WEBHOOK_SECRET`", "stripe"),
        ("discord", "`DISCORD_WEBHOOK_SECRET`: the sender's public key", "discord"),
        ("truelayer", "`TRUELAYER_WEBHOOK_SECRET`, or empty: its keys are fetched", "truelayer"),
        ("hmac", "`NAME_WEBHOOK_SECRET`", "NAME"),
    ],
)
def test_page_begins_with_what_connects_a_sender(name, variable, source):
    first, _ = senders_page.page().split("## What is verified")

    assert f"| `{name}` | {variable} | `https://your.host/hooks/{source}` | " in first


@pytest.mark.parametrize(
    ("name", "end"),
    [("strava", "/SECRET`"), ("azure_event_grid", "?code=SECRET`"), ("pandadoc", "pandadoc`")],
)
def test_url_to_paste_has_the_secret_where_the_sender_brings_it_there(name, end):
    assert senders_page.to_paste(name)[2].endswith(end)


def test_readme_names_the_senders_there_are():
    readme = senders_page.README.read_text()

    assert readme == senders_page.with_part(readme), "run: make docs"


def test_labels_that_init_says_are_those_of_the_test_deliveries():
    assert senders_page.LABELS_FILE.read_text() == senders_page.labels(), "run: make docs"


def test_other_names_are_of_senders_there_are():
    others = senders_page.KNOWN_AS

    assert set(others.values()) <= set(names())
    assert not set(others) & set(names())


@for_each(names)
def test_sender_has_evidence_of_a_known_kind(name):
    assert senders_page.evidence(name) in senders_page.EVIDENCE


@for_each(names)
def test_sender_says_in_a_line_what_is_verified(name):
    assert senders_page.provider_of(name).summary


def test_sender_is_either_there_or_left_out():
    left_out = {path.stem.replace("-", "_") for path in senders_page.LEFT_OUT.glob("*.txt")}

    assert left_out
    assert not left_out & set(names())


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (None, ""),
        (timedelta(seconds=90), "1.5 min"),
        (timedelta(minutes=90), "90 min"),
        (timedelta(hours=2), "2 hours"),
        (timedelta(days=7), "7 days"),
    ],
)
def test_span_of_time_is_written_in_a_unit_that_it_is_a_few_of(time, said):
    assert senders_page.span(time) == said


def test_sender_without_deliveries_has_no_evidence_and_no_error():
    assert senders_page.evidence("nobody") == senders_page.NONE


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("front", "self-signed"),
        ("monday", "self-signed"),
        ("x_twitter", "third party"),
        ("notion", "vendor SDK"),
    ],
)
def test_probe_that_anybody_could_send_is_no_evidence(name, best):
    assert senders_page.evidence(name) == best


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("stripe", "5 min"),
        ("hubspot", "5 min"),
        ("gong", "the token's `exp`"),
        ("vonage", "5 min"),
        ("buildkite", "5 min; of some deliveries nothing"),
        ("netlify", ""),
    ],
)
def test_page_says_what_holds_against_replays(name, holds):
    assert senders_page.against_replays(name) == holds
