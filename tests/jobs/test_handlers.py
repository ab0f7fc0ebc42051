import sys
from datetime import timedelta

import pytest

from hookonce.jobs import handlers
from hookonce.jobs.handlers import Handler, HandlerError, Registry, RetryLater
from hookonce.jobs.registration import import_handlers, on


@pytest.fixture
def registry(monkeypatch):
    registry = Registry()
    monkeypatch.setattr(handlers, "registry", registry)
    return registry


def handler(place="stripe", pattern="*", name="h", function=print, **changes):
    options = {
        "attempts": 10,
        "backoff": (timedelta(seconds=5), timedelta(hours=1)),
        "timeout": timedelta(seconds=30),
    }
    return Handler(name, place, pattern, function, **(options | changes))


@pytest.mark.parametrize(
    ("place", "pattern", "source", "provider", "type_", "takes"),
    [
        ("stripe", "invoice.paid", "stripe", "stripe", "invoice.paid", True),
        ("stripe", "invoice.paid", "billing", "stripe", "invoice.paid", True),
        ("billing", "invoice.paid", "billing", "stripe", "invoice.paid", True),
        ("billing", "*", "stripe", "stripe", "invoice.paid", False),
        ("stripe", "invoice.*", "stripe", "stripe", "invoice.paid", True),
        ("stripe", "invoice.*", "stripe", "stripe", "invoices.paid", False),
        ("stripe", "invoice", "stripe", "stripe", "invoice.paid", False),
        ("stripe", "*.paid", "stripe", "stripe", "invoice.paid", True),
        ("stripe", "invoice.[p]aid", "stripe", "stripe", "invoice.paid", False),
        ("stripe", "*", "stripe", "stripe", "line\nbreak", True),
        ("standard-webhooks", "*", "x", "standard_webhooks", "t", True),
    ],
)
def test_handler_takes_what_its_place_and_pattern_say(place, pattern, source, provider, type_, takes):
    assert handler(place, pattern).takes(source, provider, type_) is takes


def test_handler_waits_longer_after_each_failure_up_to_its_limit():
    for attempt, full in [(1, 5), (2, 10), (3, 20), (11, 3600), (500, 3600)]:
        assert full / 2 <= handler().delay(attempt).total_seconds() <= full


def test_handler_waits_no_longer_than_time_can_tell():
    day = timedelta(days=1)

    assert handler(backoff=(day, 2 * day)).delay(500) <= 2 * day


def test_on_names_a_handler_by_its_function(registry):
    @on("stripe", "invoice.*", attempts=3, backoff=(1, 2), timeout=4)
    def credit(_event, _tx):
        return None

    (made,) = registry
    assert made.name == f"{__name__}.{credit.__qualname__}"
    assert made.attempts == 3
    assert made.backoff == (timedelta(seconds=1), timedelta(seconds=2))
    assert made.timeout == timedelta(seconds=4)


def test_registry_gives_a_function_with_two_patterns_once(registry):
    function = on("stripe", "a.*", name="f")(on("stripe", "*.b", name="f")(lambda *_: None))

    assert [h.function for h in registry.matching("stripe", "stripe", "a.b")] == [function]


def test_registry_gives_handlers_in_the_order_they_were_registered():
    registry = Registry()
    for name, pattern in [("first", "a.*"), ("second", "*"), ("first", "*.b")]:
        registry.add(handler(pattern=pattern, name=name))

    assert [h.name for h in registry.matching("stripe", "stripe", "a.b")] == ["first", "second"]


def test_registry_refuses_one_name_with_two_time_limits():
    registry = Registry()
    registry.add(handler(pattern="a.*"))

    with pytest.raises(
        HandlerError, match="'h' has different attempts, backoff, timeout, isolation, tx, stale or limits"
    ):
        registry.add(handler(pattern="b.*", timeout=timedelta(seconds=600)))


def test_registry_refuses_two_functions_under_one_name():
    registry = Registry()
    registry.add(handler())

    with pytest.raises(HandlerError, match="two handlers are called 'h'"):
        registry.add(handler(function=len))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"attempts": 0}, r": attempts=0 is wrong; expected a number from 1$"),
        ({"attempts": True}, r": attempts=True is wrong"),
        ({"attempts": 2.5}, r": attempts=2.5 is wrong"),
        ({"backoff": (2, 1)}, r": backoff=\(2, 1\) is wrong; expected 0 <= first pause <= longest pause$"),
        ({"backoff": (-1, 1)}, r": backoff=\(-1, 1\) is wrong"),
        ({"timeout": 0}, r": timeout=0 is wrong; expected more than 0, and 3600 s at most$"),
        ({"timeout": 3601}, r": timeout=3601 is wrong"),
        ({"attempts": 0, "timeout": 0}, r": attempts=0 is wrong; .+; timeout=0 is wrong"),
    ],
)
def test_on_refuses_values_that_make_no_sense(registry, options, expected):
    with pytest.raises(HandlerError, match=expected):
        on("stripe", "*", **options)(lambda *_: None)

    assert not len(registry)


@pytest.mark.parametrize("isolation", ["read uncommitted", "SERIALIZABLE", 3])
def test_on_names_the_isolation_levels_there_are(registry, isolation):
    with pytest.raises(
        HandlerError, match="expected one of 'read committed', 'repeatable read', 'serializable'"
    ):
        on("stripe", "*", isolation=isolation)(lambda *_: None)

    assert not len(registry)


@pytest.mark.parametrize("options", [{"timeout": "60s"}, {"backoff": ("5s", "1h")}])
def test_on_says_what_a_span_is(registry, options):
    with pytest.raises(HandlerError, match=r"seconds or (?:as timedeltas|a timedelta)"):
        on("stripe", "*", **options)(lambda *_: None)

    assert not len(registry)


@pytest.mark.parametrize("backoff", [(2,), (1, 2, 3), 5])
def test_on_says_that_backoff_is_two_pauses(registry, backoff):
    with pytest.raises(
        HandlerError, match=r"expected two pauses, the first and the longest, .* backoff=\(5, 3600\)"
    ):
        on("stripe", "*", backoff=backoff)(lambda *_: None)

    assert not len(registry)


@pytest.mark.parametrize("breaker", [True, False, 0, -1, 2.5, "20"])
def test_on_says_that_a_breaker_is_a_number_of_failures(registry, breaker):
    with pytest.raises(HandlerError, match="expected a number of failures from 1"):
        on("stripe", "*", breaker=breaker)(lambda *_: None)

    assert not len(registry)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
@pytest.mark.parametrize("what", ["name", "type"])
def test_on_refuses_what_postgresql_can_not_hold(registry, what, text):
    pattern, name = (text, None) if what == "type" else ("*", text)
    with pytest.raises(HandlerError, match=f"a handler's {what} is .* without NUL or lone surrogates"):
        on("stripe", pattern, name=name)(lambda *_: None)

    assert not len(registry)


def test_retry_later_says_what_a_delay_is():
    with pytest.raises(TypeError, match="'5m' is not a time; expected seconds or a timedelta"):
        RetryLater("5m")


@pytest.mark.parametrize("use", [lambda: on(lazy), lambda: on("stripe", lazy)])
def test_on_refuses_what_is_no_source_and_type(use):
    with pytest.raises(HandlerError, match="expected a source and a type"):
        use()


def lazy(_event, _tx):
    yield


async def lazy_and_asynchronous(_event, _tx):
    yield


@pytest.mark.parametrize(
    "function", [lazy, lazy_and_asynchronous, lambda: None, lambda _: None, lambda _a, _b, _c: None]
)
def test_on_refuses_what_can_not_be_called_as_a_handler(registry, function):
    with pytest.raises(HandlerError, match=r"\(event, tx\)"):
        on("stripe", "*", name="h")(function)

    assert not len(registry)


def test_registry_names_every_handler_for_a_place_that_is_not_there():
    registry = Registry()
    for name, place in [("a", "stripe"), ("b", "strpe"), ("c", "nowhere-near"), ("d", "standard-webhooks")]:
        registry.add(handler(place, name=name))

    with pytest.raises(HandlerError) as refused:
        registry.require_places(["partner"], ["stripe", "standard_webhooks"])

    assert str(refused.value).startswith("handler 'b' takes events of 'strpe'")
    assert "did you mean 'stripe'?" in str(refused.value)
    assert "handler 'c'" in str(refused.value)
    assert "handler 'a'" not in str(refused.value)


def test_registry_refuses_a_source_spelled_with_the_other_dash():
    registry = Registry()
    registry.add(handler("my_partner"))

    with pytest.raises(HandlerError, match="no source and no provider; did you mean 'my-partner'"):
        registry.require_places(["my-partner"], ["stripe"])


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import nothing_of_the_kind", r"ModuleNotFoundError: .+ \(broken_handlers.py:1\)"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("\n\nassert False", r"AssertionError \(broken_handlers.py:3\)"),
        ("raise ValueError('two\\nlines')", r"ValueError: two lines \(broken_handlers.py:1\)"),
    ],
)
def test_import_handlers_names_the_module_that_fails(tmp_path, monkeypatch, code, error):
    (tmp_path / "broken_handlers.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])

    with pytest.raises(HandlerError, match=f"'broken_handlers' does not import: {error}"):
        import_handlers(["broken_handlers"])


def test_handler_is_quick_while_one_in_twenty_of_its_attempts_at_most_is_not():
    registry, quick = Registry(), timedelta(milliseconds=1)
    told = [registry.is_quick("h")]
    for took in [quick] * 19 + [timedelta(milliseconds=6)] + [quick] * 18 + [timedelta(milliseconds=6)]:
        registry.note("h", took)
        told.append(registry.is_quick("h"))

    assert told == [False] + [True] * 38 + [False]
