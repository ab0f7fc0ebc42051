import json

import pytest
from sqlalchemy import text

from hookonce.jobs.failures.error_summary import is_library


def test_failure_names_the_line_of_the_handler_and_no_line_of_a_library(inbox):
    def broken(*_):
        json.loads("no")

    inbox.on(broken, attempts=1)
    inbox.deliver("a")

    inbox.work()

    line = broken.__code__.co_firstlineno + 1
    assert inbox.rows("SELECT error FROM hookonce.failures")[0][0].endswith(f"test_error_summary.py:{line})")


def test_error_of_a_statement_is_kept_without_its_parameters(inbox):
    def careless(_, tx):
        tx.execute(text("INSERT INTO nowhere VALUES (:card)"), {"card": "4242-4242"})

    inbox.on(careless, attempts=1)
    inbox.deliver("a")

    inbox.work()

    ((error,),) = inbox.rows("SELECT error FROM hookonce.failures")
    assert "INSERT INTO nowhere" in error
    assert "4242" not in error


def test_error_without_end_is_kept_in_part(inbox):
    def verbose(_event, _tx):
        raise ValueError("x" * 1_000_000)

    inbox.on(verbose)
    inbox.deliver("a")

    inbox.work()

    kept = inbox.rows("SELECT error FROM hookonce.failures")[0][0]
    assert kept.startswith("ValueError: xxx")
    assert len(kept) < 2_000


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (json.__file__, True),
        ("<string>", True),
        ("lib/sqlalchemy/cyextension/resultproxy.pyx", True),
        ("psycopg_c/_psycopg/transform.pyx", True),
        (__file__, False),
        ("shop.py", False),
    ],
)
def test_code_of_libraries_is_told_from_the_users(path, expected):
    assert is_library(path) is expected
