import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger import alerts, rejected
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.stats import activity, counters, redeliveries
from hookonce.receiver.ledger.stats.counters import Kind, Tally
from hookonce.receiver.ledger.store import store
from hookonce.receiver.monitoring import ledger_metrics
from tests.support import desk
from tests.support.for_each import for_each
from tests.support.new_event import new_event
from tests.support.outcomes import end_events

DEPLOY = Path(__file__).parents[2] / "deploy"
ADDED = {"le", "instance", "job"}  # labels that Prometheus itself gives

TOKEN = re.compile(
    r"""(?P<string>"[^"]*") | (?P<range>\[[^\]]*\]) | (?P<number>\d+(?:\.\d+)?\w*) | (?P<variable>\$\w+)
      | (?P<word>[A-Za-z_:][\w:]*) | (?P<operator>=~|!~|!=|==|<=|>=|[-+*/%^<>=]) | (?P<mark>[(){},])
      | (?P<space>\s+)""",
    re.VERBOSE,
)
GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
OPERATORS = {"and", "or", "unless", "bool", "offset"}


def parse(expression):
    """The metrics of a PromQL expression with the labels used on each, and the labels of its groupings."""
    tokens, at = [], 0
    while at < len(expression):
        found = TOKEN.match(expression, at)
        assert found, f"not PromQL at {expression[at:]!r}"
        at = found.end()
        if found.lastgroup != "space":
            tokens.append((found.lastgroup, found[0]))
    depth, metrics, groupings = [], {}, set()
    for n, (kind, text) in enumerate(tokens):
        before, after = (tokens[i] if 0 <= i < len(tokens) else ("", "") for i in (n - 1, n + 1))
        if text in "({":
            depth.append(f"by{text}" if before[1] in GROUPING else text)
        elif kind == "mark" and text in ")}":
            assert depth, f"unbalanced: {expression}"
            assert depth.pop()[-1] == {")": "(", "}": "{"}[text], f"unbalanced: {expression}"
        elif kind == "word" and depth[-1:] == ["{"]:
            metrics[current].add(text)  # noqa: F821  a label follows its metric
        elif kind == "word" and depth[-1:] == ["by("]:
            groupings.add(text)
        elif (
            kind == "word"
            and text not in GROUPING | OPERATORS
            and after[1] != "("
            and after[1] not in GROUPING
        ):
            current = text
            metrics.setdefault(current, set())
    assert not depth, f"unbalanced: {expression}"
    return metrics, groupings


def rules():
    document = yaml.safe_load((DEPLOY / "alerts.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def dashboard():
    return json.loads((DEPLOY / "grafana.json").read_text())


def expressions():
    yield from ((rule["alert"], rule["expr"]) for rule in rules())
    board = dashboard()
    for panel in board["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel.get("targets", []))
    yield from ((each["name"], each["expr"]) for each in board["annotations"]["list"])
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()
            yield variable["name"], f"max by ({label}) ({metric})"


@pytest.fixture(scope="module")
def page(fresh_database, fresh_redis):
    """What a real `/metrics` says of an inbox in which everything has happened once."""
    with fresh_database() as database_url, fresh_redis() as redis_url:
        with connections.connect(database_url) as connection:
            happen(connection)
        environ = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": "/dev/null"}
        app = create_app(load_settings(environ))
        yield app.test_client().get("/metrics").text
        app.extensions["hookonce"].close()


def happen(connection):
    (row,) = store(connection, [new_event()]).values()
    store(connection, [new_event(body=b"other")])
    end_events(connection, "done", [row.id], handler="h", ago=timedelta(minutes=2))
    connection.execute("UPDATE hookonce.runs SET started_at = finished_at - interval '0.3 seconds'")
    store(connection, [new_event("dead", unreadable="bad_body: it is none")])
    connection.execute("UPDATE hookonce.events SET received_at = now() - interval '3 minutes'")
    rejected.add_rejections(connection, [], {("stripe", "stale"): 1})
    redeliveries.add_redeliveries(connection, {("stripe", "evt_1"): 1})
    rejected.add_secret_uses(connection, {("stripe", 1): 1})
    alerts.raise_alert(connection, "dead_runs", "stripe", "")
    counted = [Tally(kind, "stripe", "some") for kind in Kind if kind is not Kind.TYPE]
    counters.add(connection, dict.fromkeys(counted, 1))
    failed = store(connection, [new_event("failed")])["stripe", "failed"].id
    connection.execute(
        "UPDATE hookonce.queue SET handler = 'h', attempts = 1, due_at = now() WHERE event = %s", [failed]
    )
    connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error) VALUES (%s, 'h', 1, 1, '')",
        [failed],
    )
    desk.fail_in_a_row(connection, "h", 1, limit=1)
    connection.execute(
        "INSERT INTO hookonce.idempotency (scope, key, fingerprint, state) VALUES ('[\"pay\"]', 'k', '', 'in_progress')"
    )
    while activity.fill(connection):
        pass


@pytest.fixture(scope="module")
def known(page):
    """Sample name → label names, of that page."""
    found = {}
    for family in text_string_to_metric_families(page):
        found.setdefault(family.name, set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_deployed_expressions_use_metrics_and_labels_that_exist(known):
    for_each(expressions())(require_known)(known=known)


def require_known(title, expression, known):
    metrics, groupings = parse(expression)

    assert metrics, f"{title} looks at nothing"
    assert not [name for name in metrics if name not in known], title
    for name, labels in metrics.items():
        assert labels <= known[name] | ADDED, title
    assert groupings <= set().union(*(known[name] for name in metrics)) | ADDED, title


def test_deployed_rules_say_what_happened_and_what_to_do():
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert {"summary", "description"} == set(rule["annotations"])
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_dashboard_panels_do_not_overlap():
    taken = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


@pytest.mark.parametrize("text", ["sum(rate(a[5m])", "max by (b) {", "a ? b", "a{b=}}"])
def test_parse_refuses_what_is_no_expression(text):
    with pytest.raises(AssertionError):
        parse(text)


def test_metrics_count_what_happened_since_ever(page):
    for line in (
        'hookonce_events_accepted_total{source="stripe"} 3.0',
        'hookonce_events_done_total{source="stripe"} 1.0',
        'hookonce_duplicates_total{source="stripe"} 1.0',
        'hookonce_rejections_total{reason="stale",source="stripe"} 1.0',
        'hookonce_run_duration_seconds_bucket{le="0.25",source="stripe"} 0.0',
        'hookonce_run_duration_seconds_bucket{le="0.5",source="stripe"} 1.0',
        'hookonce_run_duration_seconds_bucket{le="+Inf",source="stripe"} 1.0',
        'hookonce_run_duration_seconds_sum{source="stripe"} 0.3',
        'hookonce_alert{kind="dead_runs",subject="stripe"} 1.0',
        "hookonce_conflicts 1.0",
        "hookonce_workers 0.0",
    ):
        assert any(same(line, other) for other in page.splitlines()), line


def same(one, other):
    """Tell whether two samples are equal, in whatever order their labels come."""
    return sorted(re.split(r"[{,}]", one)) == sorted(re.split(r"[{,}]", other))


def test_metrics_name_event_types_of_duplicates_only(page):
    naming = [line for line in page.splitlines() if new_event().type in line]

    assert len(naming) == 1
    assert naming[0].startswith("hookonce_duplicates_by_type_total{")


def test_metrics_of_a_source_begin_at_zero_so_that_the_first_increase_shows(database_url):
    with connections.connect(database_url) as connection:
        samples = [s for family in ledger_metrics.collect(connection, {"quiet": 1}) for s in family.samples]

    told = {(sample.name, sample.labels.get("reason")): sample.value for sample in samples if sample.labels}
    assert told["hookonce_events_dead_total", None] == 0
    assert told["hookonce_rejections_total", "bad_signature"] == 0


def test_metrics_leave_out_what_waits_because_it_is_paused(database_url):
    with connections.connect(database_url) as connection:
        store(connection, [new_event(source="resting")])
        connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('source', 'resting')")
        connection.execute(
            "UPDATE hookonce.queue SET due_at = now() + interval '1 hour' WHERE source <> 'resting'"
        )

        (oldest, *_) = ledger_metrics.collect(connection, {})

    assert oldest.samples[0].value == 0


def test_metrics_of_a_stopped_handler_say_what_waits_for_it(database_url):
    with connections.connect(database_url) as connection:
        desk.stop(connection, "shop.credit", 2)
        samples = [s for family in ledger_metrics.collect(connection, {}) for s in family.samples]

    told = {sample.name: sample.value for sample in samples if sample.labels.get("handler") == "shop.credit"}
    assert told["hookonce_breaker_open"] == 1
    assert told["hookonce_waiting_for_breaker"] == 2
    assert 90 <= told["hookonce_oldest_waiting_for_breaker_seconds"] < 120


def test_metrics_cost_no_more_statements_with_more_sources(database_url):
    def statements():
        with connections.connect(database_url) as connection:
            counting = Counting(connection)
            list(ledger_metrics.collect(counting, {}))
            return counting.number

    few = statements()
    with connections.connect(database_url) as connection:
        store(connection, [new_event(source=f"source-{n}") for n in range(20)])

    assert statements() == few <= 40


class Counting:
    def __init__(self, connection):
        self.connection, self.number = connection, 0

    def cursor(self, **options):
        self.number += 1
        return self.connection.cursor(**options)

    def transaction(self):
        return self.connection.transaction()

    def execute(self, *arguments, **options):
        self.number += 1
        return self.connection.execute(*arguments, **options)
