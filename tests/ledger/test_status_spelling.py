"""A status has one spelling: code and templates take it by its name in `states.py`."""

import ast
import re
from pathlib import Path

from hookonce.receiver.ledger.states import EventStatus
from tests.support.for_each import for_each

ROOT = Path(__file__).parent.parent.parent
# Where the same word means something else: a verdict on a delivery, a replay's outcome, a column, a field, a heading.
OTHERS = {
    "receiver/cli/commands/handlers.py": {"dead", "done"},
    "receiver/cli/commands/listings.py": {"done", "received"},
    "receiver/desk/refusals.py": {"dead", "done", "ignored", "received", "running", "waiting"},
    "receiver/desk/steps.py": {"done"},
    "receiver/desk/stats.py": {"dead", "held", "waiting"},
    "receiver/cli/event_listing.py": {"dead", "received"},
    "receiver/cli/commands/planned.py": {"discarded", "running"},
    "receiver/dashboard/event_page/page.py": {"discarded"},
    "receiver/dashboard/documents/search.py": {"dead"},
    "receiver/samples/envelopes.py": {"done"},
    "receiver/cli/commands/steps.py": {"done"},
    "receiver/cli/output/event_page.py": {"received"},
    "receiver/dev/embedded/__init__.py": {"running"},
    "receiver/dev/log_lines.py": {"ignored"},
    "receiver/ledger/replay/bulk.py": {"running"},
    "receiver/ledger/replay/events.py": {"running"},
    "receiver/ledger/runs/claims.py": {"ignored", "lost"},
    "receiver/ledger/steps.py": {"done", "running"},
    "receiver/monitoring/ledger_metrics.py": {"dead", "lost"},
    "receiver/ledger/store.py": {"held"},
    "receiver/cli/commands/issues.py": {"dead", "ignored"},
    "receiver/desk/issues.py": {"ignored"},
    "jobs/alerts/messages.py": {"dead"},
    "receiver/ledger/alerts.py": {"done"},
    "receiver/ledger/stats/issues.py": {"dead", "ignored"},
    "receiver/monitoring/alert_events.py": {"dead"},
}
WORD = "|".join(EventStatus)
QUOTED = re.compile(rf"""'({WORD})'|"({WORD})\"""")
SCHEMA = ROOT / "receiver/ledger/database/tables.py"
"""SQL as it stands, whose views say each status in one place."""


def statuses_in_code(path):
    tree = ast.parse(path.read_text())
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            if node.value in set(EventStatus):
                yield node.value
            else:
                yield from (first or second for first, second in QUOTED.findall(node.value))


def named(path):
    return str(path.relative_to(ROOT))


@for_each(
    [
        path
        for folder in ("receiver", "jobs")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != SCHEMA and path.name != "states.py"
    ],
    named,
)
def test_status_is_spelled_in_one_module(path):
    assert set(statuses_in_code(path)) == OTHERS.get(str(path.relative_to(ROOT)), set())


@for_each(sorted((ROOT / "receiver/dashboard/templates/admin").glob("*.html")), named)
def test_template_takes_statuses_by_name(path):
    of_others = r"""sum\("(lost|dead)"\)|state [!=]= "ignored"|"running": E"""  # slots, issues, bulk replays
    attributes = re.compile(r"""\b(class|data-label|id)=("[^"]*"|'[^']*')|""" + of_others)
    expressions = re.findall(r"{[{%].*?[}%]}", attributes.sub("", path.read_text()))

    assert [expression for expression in expressions if QUOTED.search(expression)] == []
