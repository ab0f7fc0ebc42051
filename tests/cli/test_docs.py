import ast
import re
from pathlib import Path

import pytest

import hookonce.receiver
from hookonce.receiver.cli.commands.docs import docs
from hookonce.receiver.dashboard.documents import search
from tests.support.for_each import for_each

CODE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
QUESTIONS = {
    "stripe locally": {"how-to/tunnels"},
    "two stripe accounts": {"how-to/source-choices"},
    "two Stripe accounts, one per customer": {"how-to/source-choices"},
    "retries": {"how-to/handlers"},
    "how long is what kept": {"explanation/data-protection", "reference/tables"},
    "erase a person": {"explanation/data-protection"},
    "without Redis": {"how-to/production"},
    "managed PostgreSQL and PgBouncer": {"explanation/scaling"},
    "Slack": {"how-to/alerts"},
    "mount it in my application": {"how-to/flask", "how-to/fastapi", "how-to/django"},
    "retention": {"explanation/data-protection"},
    "purge": {"explanation/data-protection"},
    "delete": {"explanation/data-protection"},
    "gdpr": {"explanation/data-protection"},
    "dlq": {"how-to/outage"},
    "dead letter": {"how-to/outage"},
    "retry": {"how-to/handlers"},
    "secret rotation": {"how-to/rotate-a-secret"},
    "webhook secret": {"how-to/rotate-a-secret"},
    "duplicate": {"how-to/source-choices"},
    "deduplication": {"how-to/source-choices"},
    "exactly once": {"explanation/guarantees"},
    "idempotency": {"how-to/idempotent-endpoints"},
    "fifo": {"how-to/order"},
    "out of order": {"how-to/order"},
    "email": {"how-to/alerts"},
    "celery": {"how-to/django"},
    "k8s": {"how-to/kubernetes"},
    "high availability": {"explanation/scaling"},
    "circuit breaker": {"how-to/concurrency"},
    "rate limit": {"how-to/concurrency"},
    "ngrok": {"how-to/tunnels"},
    "localhost": {"how-to/tunnels"},
    "lru": {"how-to/from-your-own-endpoint"},
    "quickstart": {"tutorial"},
    "performance": {"explanation/benchmarks"},
    "fan out": {"how-to/forwards"},
    "keep_events": {"reference/configuration"},
    "WINDOW_REDIS_URL": {"reference/configuration", "reference/environment"},
    "hookonce_stale_total": {"reference/metrics"},
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_docs_find_the_page_about_a_question_first(hookonce, question):
    found = hookonce("docs", *question.split())

    first, _, _ = found.out.decode().partition(": ")
    assert (found.code, first in QUESTIONS[question]) == (0, True), first


def test_docs_find_no_heading_in_the_code_of_a_page(hookonce):
    found = hookonce("docs", "test_retries.py")

    assert ": test_retries.py\n" not in found.out.decode()


def test_excerpt_of_a_section_ends_with_a_word():
    cut = [each for each in search.sections() if each.beginning != each.text.strip()]

    assert cut
    for each in cut:
        words = each.beginning.removesuffix(" …")
        assert each.text.strip()[: len(words) + 1].split() == words.split(), each.heading


def test_docs_list_pages_and_show_one_by_its_name(hookonce):
    listed, shown = hookonce("docs"), hookonce("docs", "how-to/upgrade")

    assert "how-to/alerts " in listed.out.decode()
    assert shown.out.decode().startswith("# Upgrade")


@for_each(search.names())
def test_page_is_shown_without_its_comments(name):
    assert "<!--" not in search.text_of(name)


@pytest.mark.parametrize(
    ("word", "meant"), {"retenton": "retention", "djagno": "django", "gdrp": "gdpr"}.items()
)
def test_docs_name_the_word_that_was_meant(hookonce, word, meant):
    alone, beside = hookonce("docs", word), hookonce("docs", "slack", word)

    assert (alone.code, beside.code) == (1, 0)
    assert all(f"no page has '{word}'; did you mean '{meant}'?" in each.err for each in (alone, beside))


def test_docs_say_what_to_do_where_nothing_is_found(hookonce):
    missed = hookonce("docs", "qwertzuiop")

    assert (missed.code, "lists the pages" in missed.err) == (1, True)


@pytest.mark.parametrize(
    ("word", "title"),
    {
        "handlers": "# Write a handler",
        "replay": "# Replay a day",
        "docs/how-to/flask.md": "# Use it in a Flask application",
        "../reference/tables.md#the-queue": "# The tables, and the life of an event",
        "api": "how-to/api: The admin API",
    }.items(),
)
def test_docs_show_the_page_whose_last_part_or_link_is_given_and_search_where_two_end_so(
    hookonce, word, title
):
    assert hookonce("docs", word).lines[0] == title


@for_each(search.names())
def test_page_at_a_terminal_breaks_no_word_and_no_line_of_code(name, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    written = search.text_of(name)

    docs.callback([name])

    shown = capsys.readouterr().out
    assert "".join(shown.split()) == "".join(written.split())
    assert CODE.findall(shown) == CODE.findall(written)
    whole = re.compile(r"[^`]*`|.*\]\(")  # what is copied stays on one line
    lines = CODE.sub("", shown).splitlines()
    assert [line for line in lines if len(line) > 80 and " " in line and not whole.match(line)] == []


def texts():
    """Yield each text of the product's that is no docstring, by its module."""
    root = Path(hookonce.receiver.__file__).parent.parent
    for file in (each for room in ("receiver", "jobs") for each in (root / room).rglob("*.py")):
        tree = ast.parse(file.read_text())
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
                yield file.relative_to(root).as_posix(), node.value


def test_messages_name_pages_by_the_command_that_shows_them():
    found = list(texts())
    named = {name for _, text in found for name in re.findall(r"`hookonce docs ([\w/-]+)`", text)}

    assert [(file, text) for file, text in found if re.search(r"docs/[\w/-]+\.md", text)] == []
    assert named
    assert named <= set(search.names())
