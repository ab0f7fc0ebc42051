"""`hookonce approximate`: what a declaration would cost, and how full those are that are used."""

import pytest

from hookonce import approximate as declare
from hookonce.receiver.redis import approximate


def test_plan_prints_the_memory(hookonce):
    said = hookonce("approximate", "plan", "--most", "1000000").out.decode()

    assert "4.6 MB of Redis at most: 2 Bloom filters of 16,993,950 bits, 7 of them for each id" in said
    assert "with --exact none is, for 144.4 MB" in said


def test_plan_of_what_can_not_be_is_told(hookonce):
    result = hookonce("approximate", "plan", "--most", "1000000000000")

    assert result.code == 2
    assert "lower most, or shorten keep" in result.err


@pytest.mark.usefixtures("inbox")
def test_list_shows_how_full_each_is(hookonce, monkeypatch, redis_url):
    monkeypatch.setenv("REDIS_URL", redis_url)
    approximate.use(redis_url)
    declare("clicks_of_cli", keep="1h", most=10).mark(["a", "b"])
    approximate.use("")

    (found,) = hookonce("approximate", "list", "--json").documents

    assert (found["name"], found["ids"], found["most"]) == ("clicks_of_cli", 2, 10)
    assert "clicks_of_cli" in hookonce("approximate", "list").out.decode()
