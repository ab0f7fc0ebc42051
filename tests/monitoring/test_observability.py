"""docs/reference/observability.md against a day: each row is looked for in what came out of it."""

import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

pytest.importorskip("opentelemetry.sdk")

from tests.support import observed_day

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/observability.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy/alerts.yml").read_text())["groups"][0]["rules"]
CODE = re.compile(r"`([^`]+)`")
METRIC = re.compile(r"(hookonce_\w+)\{(.*)\}")
FIELD = re.compile(r"(delivery|run|batch|conflict|lease lost)\.(\w+)")


def rows(heading):
    """The rows of the table under a heading: what is asked for, and the other cells."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines[1:]]


def named(heading, pattern):
    return [
        (asked, found)
        for asked, *cells in rows(heading)
        for cell in cells
        for text in CODE.findall(cell)
        if (found := pattern.fullmatch(text))
    ]


@pytest.fixture(scope="module")
def day(fresh_database, fresh_redis):
    with pytest.MonkeyPatch.context() as patch, fresh_database() as database, fresh_redis() as redis:
        yield observed_day.live(database, redis, patch)


@pytest.fixture(scope="module")
def samples(day):
    return [sample for family in text_string_to_metric_families(day.page) for sample in family.samples]


METRICS = named("Metrics", METRIC)
FIELDS = named("Fields of log lines", FIELD)
SPANS = rows("Spans")
ALERTS = rows("Alerts")


@pytest.mark.parametrize(("asked", "metric"), METRICS, ids=[found[0] for _, found in METRICS])
def test_metric_is_scraped_after_the_day_and_is_more_than_nothing(samples, asked, metric):
    name, labels = metric.groups()
    wanted = dict(re.findall(r'(\w+)="([^"]*)"', labels))

    values = [sample.value for sample in samples if (sample.name, sample.labels) == (name, wanted)]

    assert len(values) == 1, asked
    assert values[0] > 0, asked


@pytest.mark.parametrize(("asked", "field"), FIELDS, ids=[found[0] for _, found in FIELDS])
def test_field_stands_in_the_lines_of_the_day(day, asked, field):
    message, name = field.groups()

    lines = [line for line in day.lines if line["message"].partition(":")[0] == message]

    assert lines, message
    assert any(line.get(name) not in (None, "", []) for line in lines), asked


@pytest.mark.parametrize(("asked", "told"), SPANS, ids=[asked for asked, _ in SPANS])
def test_span_of_the_day_has_its_attributes(day, asked, told):
    name, *attributes = CODE.findall(told)
    wanted = {each for each in attributes if each.startswith("hookonce.")}

    assert wanted
    assert any(span.name == name and wanted <= span.attributes.keys() for span in day.spans), asked


@pytest.mark.parametrize(("asked", "own", "rules"), ALERTS, ids=[row[0] for row in ALERTS])
def test_alert_is_raised_on_the_day_or_is_a_rule_over_what_was_scraped(day, samples, asked, own, rules):
    names = {sample.name for sample in samples}
    by_name = {rule["alert"]: rule["expr"] for rule in RULES}

    assert set(CODE.findall(own)) <= day.alerts, asked
    for rule in CODE.findall(rules):
        assert set(re.findall(r"hookonce_\w+", by_name[rule])) <= names, rule
    assert CODE.findall(rules)


def test_tables_have_what_the_designs_ask_for():
    assert len(rows("Metrics")) >= 11
    assert len(rows("Fields of log lines")) >= 9
    assert len(SPANS) >= 5
    assert len(ALERTS) == 6


def test_claim_of_a_key_says_in_its_span_whether_it_was_a_replay(day):
    told = [
        (span.attributes["hookonce.outcome"], span.attributes.get("hookonce.state"))
        for span in day.spans
        if span.name == "claim" and span.attributes["hookonce.operation"] == "pay"
    ]

    assert told == [
        ("claimed", "in_progress"),
        ("in_progress", None),
        ("conflict", None),
        ("replayed", "completed"),
        ("claimed", "in_progress"),
        ("taken_over", "in_progress"),
    ]


def test_spans_and_lines_of_the_day_hold_no_key_no_body_and_no_secret(day):
    said = "".join(span.to_json() for span in day.spans) + str(day.lines)

    assert "whsec" not in said
    assert "a tenant" not in said
    assert "amount" not in said
