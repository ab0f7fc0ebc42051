import pytest

from tests.support.issues import ID, die_of

OTHER = "0000aaaa1111"


@pytest.fixture
def dead(inbox, ledger):  # noqa: ARG001  where it lies
    return die_of(ledger, "a", "b"), die_of(ledger, "c", issue=OTHER, handler="mail", place="mail.py:3")


@pytest.mark.usefixtures("dead")
def test_issues_are_listed_with_how_many_died_of_each(hookonce):
    listed = hookonce("issues", "list", "--json").documents

    assert [(each["id"], each["handler"], each["dead"], each["state"]) for each in listed] == [
        (OTHER, "mail", 1, "open"),
        (ID, "shop.credit", 2, "open"),
    ]
    assert "ValueError (shop/handlers.py:12)" in hookonce("issues", "list").out.decode()


@pytest.mark.usefixtures("inbox")
def test_no_issue_is_told_of_without_a_limit(hookonce):
    assert hookonce("issues", "list").err.splitlines() == [
        "no issue matches; --state all includes those that are fixed"
    ]


@pytest.mark.usefixtures("dead")
def test_issues_beyond_a_limit_are_told_of(hookonce):
    assert hookonce("issues", "list", "--limit", "1").err == "the 1 that failed last\n"


def test_issue_shows_whose_failures_it_has_and_how_to_replay_them(hookonce, dead):
    shown = hookonce("issues", "show", ID)
    listed = hookonce("events", "list", "--issue", ID, "--json").documents

    assert f"hookonce replay --status dead --issue {ID}" in shown.out.decode()
    assert {each["id"] for each in listed} == set(dead[0])


@pytest.mark.usefixtures("dead")
def test_issue_is_fixed_ignored_and_reopened(hookonce):
    states = [
        hookonce("issues", *said, "--json").documents[0]["state"]
        for said in (("fix", ID), ("ignore", ID, "--for", "2d"), ("reopen", ID))
    ]

    assert states == ["fixed", "ignored", "open"]


@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        (("show", "ffffffffffff"), 4, "no issue has the id ffffffffffff"),
        (("show", "nonsense"), 2, "issue: expected the 12 hex digits of an issue"),
        (("ignore", ID, "--for", "soon"), 2, "'--for': "),
    ],
)
@pytest.mark.usefixtures("dead")
def test_issue_that_is_none_is_told_so(hookonce, said, code, told):
    ran = hookonce("issues", *said)

    assert ran.code == code
    assert told in ran.err
