"""Ids of which a few may be mistaken: how few, for how long, at what cost, and where it is refused."""

import os
import subprocess
import sys
import time
from datetime import timedelta

import pytest
import redis

import hookonce
from hookonce.receiver.redis import approximate
from hookonce.receiver.redis.approximate import Shape, figures
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow

AT_ONCE = 500


@pytest.fixture
def client(redis_url):
    approximate._known.clear()  # noqa: SLF001  a declaration stays for a process
    approximate.use(redis_url)
    with redis.Redis.from_url(redis_url) as client:
        yield client
    approximate.use("")


def declared(name="clicks", **changes):
    return hookonce.approximate(name, **({"keep": "1h", "most": 10_000} | changes))


def batches(ids):
    return [ids[n : n + AT_ONCE] for n in range(0, len(ids), AT_ONCE)]


def ids(count, prefix="id"):
    return [f"{prefix}-{n}" for n in range(count)]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("exact", [False, True])
def test_id_is_new_until_it_is_marked(exact):
    clicks = declared(exact=exact)

    assert clicks.new(["a", "b", "a"]) == ["a", "b"]
    clicks.mark(["a"])
    assert clicks.new(["a", "b"]) == ["b"]
    assert clicks.new([]) == []


def full(shape, client):
    """One declaration whose two spans are full, as at the end of the second."""
    clicks = declared(most=shape.most, one_in=shape.one_in, keep="2s")
    for prefix in ("before", "here"):
        begin_span(client)
        for some in batches(ids(shape.most, prefix)):
            clicks.mark(some)
    return clicks


def begin_span(client, seconds=2):
    """Wait for the next span to begin."""
    now = client.time()
    time.sleep(seconds - (now[0] + now[1] / 1e6) % seconds + 0.01)


def test_full_filters_mistake_no_more_than_was_declared(client):
    shape = Shape(timedelta(seconds=2), 12_000, 100)
    clicks = full(shape, client)
    asked = ids(12_000, "other")

    mistaken = sum(len(some) - len(clicks.new(some)) for some in batches(asked))

    assert mistaken <= 1.2 * len(asked) / shape.one_in
    (found,) = figures(client)
    assert found.wrong == pytest.approx(mistaken, rel=0.5)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("exact", [False, True])
def test_nothing_is_forgotten_within_its_time_across_an_edge(client, exact):
    clicks = declared(keep="2s", exact=exact)
    begin_span(client)
    time.sleep(1.8)
    clicks.mark(ids(100))

    time.sleep(0.3)  # in the next span, and within two seconds

    assert clicks.new(ids(100)) == []


def test_what_was_kept_is_forgotten(client):
    clicks = declared(keep="1s")
    clicks.mark(ids(100))

    time.sleep(2.1)

    assert len(clicks.new(ids(100))) == 100
    assert not client.keys("hookonce:{approximate*}:*")


@pytest.mark.parametrize("exact", [False, True])
def test_memory_is_what_the_plan_says(client, exact):
    clicks = declared(most=20_000, exact=exact)
    before = client.info("memory")["used_memory"]

    for some in batches(ids(20_000)):
        clicks.mark(some)

    assert client.info("memory")["used_memory"] - before <= 1.25 * clicks.shape.memory


def test_figures_tell_how_full_it_is(client):
    clicks = declared(most=1000)
    clicks.mark(ids(850))

    (found,) = figures(client)

    assert (found.name, found.most, found.how) == ("clicks", 1000, "one-in-1000")
    assert found.ids == pytest.approx(850, abs=5)


def test_redis_that_is_away_makes_every_id_new_and_is_counted(client, redis_url, caplog):
    clicks = declared()
    clicks.mark(["a"])
    approximate.use("redis://127.0.0.1:1")

    assert clicks.new(["a", "b"]) == ["a", "b"]

    assert "Redis is away" in caplog.text
    approximate.use(redis_url)
    assert clicks.new(["a", "b"]) == ["b"]
    assert figures(client)[0].unanswered == 2


@pytest.mark.usefixtures("client")
def test_any_text_is_an_id_and_hides_no_other():
    clicks = declared()
    clicks.mark(["a", "\ud800", "\0", ""])

    assert clicks.new(["a", "\ud800", "\udfff", "\0", "", "b"]) == ["\udfff", "b"]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("other", [1, None, b"a"])
def test_what_is_no_text_is_refused_and_not_taken_for_new(other):
    with pytest.raises(TypeError, match=r"'clicks' is given .*; expected str"):
        declared().new(["a", other])


def test_redis_that_has_forgotten_is_told(client, caplog):
    clicks = declared()
    clicks.mark(["a"])

    client.flushdb()

    assert clicks.new(["a"]) == ["a"]
    assert "approximate 'clicks': Redis has forgotten what was marked" in caplog.text
    assert [each.name for each in figures(client)] == ["clicks"]


@pytest.mark.parametrize("entry", [b"one", b"a:1h:many:exact", b"\xff:1h:1:exact", b"a:1h:9:exact"])
def test_entry_of_somebody_else_hides_no_other(client, entry):
    declared().mark(["a"])
    client.sadd(approximate.DECLARED, entry)
    client.hset(b"hookonce:{approximate:%b}" % entry, "here", "no number")

    assert [each.name for each in figures(client)] == ["clicks"]
    assert not client.sismember(approximate.DECLARED, entry)


def test_another_declaration_begins_anew(client):
    declared(most=1000).mark(["a"])
    approximate._known.clear()  # noqa: SLF001  as a deploy does

    assert declared(most=2000).new(["a"]) == ["a"]
    assert len(figures(client)) == 2


@pytest.mark.usefixtures("client")
def test_processes_know_what_each_has_marked(redis_url):
    code = (
        "import hookonce; from hookonce.receiver.redis import approximate as a; import sys; a.use(sys.argv[1]); "
        "hookonce.approximate('clicks', keep='1h', most=10_000).mark(['a'])"
    )
    subprocess.run([sys.executable, "-c", code, redis_url], check=True, env=os.environ, timeout=30)

    assert declared().new(["a", "b"]) == ["b"]


@pytest.mark.usefixtures("client")
def test_process_that_was_forked_asks_on_a_connection_of_its_own():
    clicks = declared()
    clicks.mark(["a"])
    child = os.fork()
    if not child:
        os._exit(0 if clicks.new(["a", "b"]) == ["b"] else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert clicks.new(["a"]) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"moves_money": True}, "would be taken for known and lost"),
        ({"keep": "1"}, "expected a number with its unit"),
        ({"keep": "40d"}, "expected from 1s to 30d"),
        ({"most": 0}, "expected whole numbers from 1 on"),
        ({"one_in": 0}, "expected whole numbers from 1 on"),
        ({"most": 10**12}, "lower most, or shorten keep"),
        ({"name": "Ä"}, "expected a name of lower-case letters"),
    ],
)
def test_what_can_not_be_is_told(changes, told):
    with pytest.raises(ValueError, match=told):
        declared(**changes)


def test_one_name_is_declared_alike_everywhere():
    declared("telemetry")

    with pytest.raises(ValueError, match="declared twice"):
        declared("telemetry", most=1)
    assert declared("telemetry") is declared("telemetry")


def test_server_that_answers_something_else_is_as_good_as_away(client):
    client.set("hookonce:{approximate:clicks:3600s:10000:one-in-1000}", "a text where a hash was")

    assert declared().new(["a"]) == ["a"]


@pytest.mark.usefixtures("client")
def test_window_that_is_forgotten_leaves_it_alone(redis_url):
    clicks = declared()
    clicks.mark(["a"])

    with connect(redis_url) as window:
        DedupWindow(window, CircuitBreaker()).forget()

    assert clicks.new(["a"]) == []
