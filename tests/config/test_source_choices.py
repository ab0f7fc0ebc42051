"""What an operator may choose for any source, and what is said of a choice that makes no sense."""

from datetime import timedelta

import pytest

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.source import FOREVER, Limit
from tests.support.declared import declared
from tests.support.for_each import for_each

SECRET = "whsec_" + "a" * 32


def text_of(lines, provider="stripe", top="", secret="env:S"):  # noqa: S107  a reference
    return f'{top}\n[sources.a]\nprovider = "{provider}"\nsecrets = ["{secret}"]\n{lines}\n'


@pytest.fixture
def source(load):
    return lambda lines, **changes: load(text_of(lines, **changes), S=SECRET).sources["a"]


def test_choices_are_read(source):
    found = source(
        'id = ["$.order.id", "$.status"]\naccount = "header:X-Shop"\nscope_ids_by_account = true\n'
        'keep_body = false\nkeep_events = "forever"\nrate = "600/m"\nquota = "1000000/d"',
    )

    assert found.chosen.places == ("$.order.id", "$.status")
    assert (found.chosen.account, found.chosen.is_scoped, found.keep_body) == ("header:X-Shop", True, False)
    assert (found.keep_events, found.rate) == (FOREVER, Limit(600, timedelta(minutes=1)))
    assert found.quota == Limit(1_000_000, timedelta(days=1))
    assert found.refuses_with is None


def test_one_place_needs_no_list(source):
    assert source('id = "$.order"').chosen.places == ("$.order",)


def test_nothing_chosen_changes_nothing(source):
    plain = source("")

    assert (plain.rate, plain.quota, plain.keep_events, plain.keep_body) == (None, None, None, True)
    assert not plain.chosen.is_any


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('id = ["order.id"]', "expected '$.path', 'header:Name' or 'query:name'"),
        ('id = ["$"]', "is not a place"),
        ('id = ["$.items[*].id"]', "names many places"),
        ('id = ["$.a", "$.a"]', "named twice"),
        ('id = ["header:x_id"]', "header 'x_id' never arrives"),
        ('id = ["header:User-Agent"]', "says the same of every delivery"),
        ('account = "account"', "account: 'account' is not a place"),
        ('rate = "600"', 'expected a whole number (1 to 9999999999) per s, m, h or d, like "600/m"'),
        ('rate = "0/m"', "expected a whole number"),
        ("quota = 5", "expected a whole number"),
        ('over_limit = "hold"', "neither rate nor quota"),
        ('rate = "1/m"\nover_limit = "drop"', "over_limit"),
        ('rate = "1/m"\nover_limit = "refuse"', "stripe disables endpoints (days of failures)"),
        ('keep_events = "2d"', "expected 3d or more"),
        ('keep_events = "3d"', 'set its keep_events to "4d" or more'),
        ('keep_events = "always"', "expected a number with its unit"),
        ("keep_body = false\nquarantine = true", "what is in quarantine is whole"),
        ('quarantine = { time = "31d" }', "quarantine] time: expected 30 d at most"),
        ("quarantine = { size = 500 }", "quarantine] size: expected a number with its unit"),
        ("quarantine = { count = 0 }", "[sources.a.quarantine] count: expected greater than or equal to 1"),
    ],
)
def test_mistake_is_told(mistakes, lines, said):
    found = str(mistakes(text_of(lines), S=SECRET))

    assert said in found
    assert SECRET not in found


def test_own_horizon_of_a_source_is_what_its_sender_is_held_against(source):
    short = '[receiver]\nkeep_events = "3d"'

    with pytest.raises(ConfigError, match="its sender retries for 3 d"):
        source("", top=short)
    assert source('keep_events = "forever"', top=short).keep_events == FOREVER
    assert source('keep_events = "30d"', top=short).keep_events == timedelta(days=30)


def test_horizon_that_is_none_is_told_what_it_may_be(source):
    with pytest.raises(ConfigError, match=r'keep_events: expected a number .* 4w; or "forever"'):
        source('keep_events = "forevr"')


def test_command_has_a_horizon_and_limits_of_its_own(load):
    top = (
        '[commands.pay]\nhandler = "shop:pay"\nauth = { shop = ["env:S"] }\n'
        'keep_events = "forever"\nquota = "5/d"\nrate = 0.5'
    )
    settings = load(text_of('keep_events = "30d"', top=top), S=SECRET)

    assert settings.horizons() == {"a": timedelta(days=30), "commands.pay": FOREVER}
    assert settings.commands["pay"].quota == Limit(5, timedelta(days=1))
    assert settings.commands["pay"].rate == Limit(1, timedelta(seconds=2))


def test_token_limits_are_read(load):
    settings = load('[admin]\ntoken_rate = "2/m"\ntoken_quota = "9/d"')

    assert (settings.admin.token_rate, settings.admin.token_quota) == (
        Limit(2, timedelta(minutes=1)),
        Limit(9, timedelta(days=1)),
    )


UNBOUND = 'hmac = { header = "X-Signature", id = "header:X-Id", type = "$.type" }'


def test_declared_source_that_signs_neither_id_nor_time_says_what_repeats_are(source):
    with pytest.raises(ConfigError, match=r'write repeats = "hold" .* else repeats = "run"'):
        source(UNBOUND, provider="hmac")

    assert source(f'repeats = "hold"\n{UNBOUND}', provider="hmac").repeats == "hold"


@pytest.mark.parametrize(
    "options",
    [
        'hmac = { header = "X-Signature", id = "$.id", type = "$.type" }',
        'hmac = { header = "X-S", id = "header:X-Id", type = "$.type", signed = "{header:x-id}.{body}" }',
        'hmac = { header = "X-S", id = "header:X-I", type = "$.t", signed = "{timestamp}{body}", timestamp = "X-T" }',
        'token = { in = "header:X-Token", id = "header:X-Id", type = "$.type" }',
    ],
)
def test_source_that_signs_id_or_time_or_nothing_need_not(options, source):
    assert source(options, provider=options.split()[0]).repeats == "run"


@for_each(declared)
def test_declaration_is_one_that_a_source_may_have(each, source):
    source("\n".join(each.lines), provider=each.said["source"]["provider"], secret="env:NONE?")


def test_tolerance_of_a_sender_that_signs_no_time_is_a_mistake(source):
    with pytest.raises(ConfigError, match="github signs no time; remove it"):
        source('tolerance = "10m"', provider="github")
    with pytest.raises(ConfigError, match="tolerance is longer than 30d"):
        source('tolerance = "31d"')

    assert source('tolerance = "10m"\nmax_body = 2048').tolerance == timedelta(minutes=10)
