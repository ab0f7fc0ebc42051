import pytest


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("keep erase person", "explanation/data-protection"),
        ("slack", "how-to/alerts"),
        ("pgbouncer", "explanation/scaling"),
        ("replay", "how-to/replay"),
    ],
)
def test_docs_find_the_page_about_a_question(hookonce, words, page):
    found = hookonce("docs", *words.split())

    assert found.code == 0
    assert f"{page}: " in found.out.decode()


def test_docs_list_pages_and_show_one_by_its_name(hookonce):
    listed, shown = hookonce("docs"), hookonce("docs", "how-to/upgrade")

    assert "how-to/alerts " in listed.out.decode()
    assert shown.out.decode().startswith("# Upgrade")


def test_docs_say_what_to_do_where_nothing_is_found(hookonce):
    missed = hookonce("docs", "qwertzuiop")

    assert (missed.code, "lists the pages" in missed.err) == (1, True)
