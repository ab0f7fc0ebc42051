import pytest

QUESTIONS = {
    "stripe locally": {"how-to/tunnels"},
    "two stripe accounts": {"how-to/source-choices"},
    "two Stripe accounts, one per customer": {"how-to/source-choices"},
    "retries": {"how-to/handlers"},
    "replay": {"how-to/replay"},
    "how long is what kept": {"explanation/data-protection", "reference/tables"},
    "erase a person": {"explanation/data-protection"},
    "without Redis": {"how-to/production"},
    "managed PostgreSQL and PgBouncer": {"explanation/scaling"},
    "Slack": {"how-to/alerts"},
    "mount it in my application": {"how-to/flask", "how-to/fastapi", "how-to/django"},
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_docs_find_the_page_about_a_question_first(hookonce, question):
    found = hookonce("docs", *question.split())

    first, _, _ = found.out.decode().partition(": ")
    assert (found.code, first in QUESTIONS[question]) == (0, True), first


def test_docs_find_no_heading_in_the_code_of_a_page(hookonce):
    found = hookonce("docs", "test_retries.py")

    assert ": test_retries.py\n" not in found.out.decode()


def test_docs_list_pages_and_show_one_by_its_name(hookonce):
    listed, shown = hookonce("docs"), hookonce("docs", "how-to/upgrade")

    assert "how-to/alerts " in listed.out.decode()
    assert shown.out.decode().startswith("# Upgrade")


def test_docs_say_what_to_do_where_nothing_is_found(hookonce):
    missed = hookonce("docs", "qwertzuiop")

    assert (missed.code, "lists the pages" in missed.err) == (1, True)
