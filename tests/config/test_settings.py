import dataclasses
import sys
from datetime import timedelta

import pytest

from hookonce.receiver.config.commands import Command
from hookonce.receiver.config.file_mistakes import settings_of
from hookonce.receiver.config.forwards import Forward
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.source import NOT_WRITTEN, Source

SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ"


def test_settings_reads_sources_and_their_secrets(load, tmp_path):
    (tmp_path / "partner").write_text("s3cret\n")
    settings = load(
        f"""
        [receiver]
        handlers = ["myapp.handlers"]
        public_url = "https://hooks.example.com/"
        [sources.stripe]
        provider = "stripe"
        secrets = ["env:NEW", "env:OLD?"]
        window = 60
        [sources.partner]
        provider = "hmac"
        secrets = ["file:{tmp_path}/partner"]
        repeats = "hold"
        hmac = {{ header = "X-Signature", hash = "sha256", encoding = "hex", id = "$.id", type = "$.event" }}
        """,
        NEW=SECRET,
    )

    assert settings.handlers == ("myapp.handlers",)
    stripe, partner = settings.sources["stripe"], settings.sources["partner"]
    assert (stripe.secrets, stripe.window) == ((SECRET,), timedelta(seconds=60))
    assert (partner.secrets, partner.repeats, partner.provider.name) == (("s3cret",), "hold", "hmac")
    assert partner.public_url == "https://hooks.example.com"


def test_settings_never_show_a_secret(load):
    settings = load(
        '[sources.stripe]\nsecrets = ["env:NEW"]\n[admin]\ntoken = "env:TOKEN"\n',
        NEW=SECRET,
        TOKEN="token-of-the-tests",
        DATABASE_URL="postgresql://me:pass-word@x/y",
        REDIS_URL="redis://:pass-word@x",
    )

    shown = repr(settings)

    assert "stripe" in shown
    assert not [each for each in (SECRET, "token-of-the-tests", "pass-word") if each in shown]


def test_settings_needs_no_file(tmp_path):
    environ = {
        "HOOKONCE_CONFIG": "/dev/null",
        "HOOKONCE_DATA": str(tmp_path),
        "HOOKONCE_SECRET__STRIPE": f"{SECRET}, whsec_b2xk",
        "HOOKONCE_HANDLERS": "a.b, c",
        "DATABASE_URL": "postgresql:///x",
    }

    settings = load_settings(environ)

    assert settings.sources["stripe"].secrets == (SECRET, "whsec_b2xk")
    assert settings.handlers == ("a.b", "c")


def test_settings_treats_dash_and_underscore_in_provider_names_alike(load):
    settings = load('[sources.x]\nprovider = "standard-webhooks"\nsecrets = ["env:S"]', S=SECRET)

    assert settings.sources["x"].provider.name == "standard_webhooks"


@pytest.mark.parametrize(
    ("provider", "said", "repeats"),
    [
        ("linear", "", "hold"),
        ("linear", 'repeats = "run"', "run"),
        ("github", "", "run"),
        ("github", 'repeats = "hold"', "hold"),
    ],
)
def test_settings_holds_repeats_of_a_sender_whose_bodies_never_repeat(load, provider, said, repeats):
    settings = load(
        f'[sources.x]\nprovider = "{provider}"\nsecrets = ["env:S"]\n{said}', S="a-secret-of-ours"
    )

    assert settings.sources["x"].repeats == repeats


def test_settings_lets_the_environment_win(load):
    settings = load(
        '[receiver]\ndatabase_url = "postgresql:///file"\nhandlers = ["file"]', HOOKONCE_HANDLERS="env"
    )

    assert (settings.database_url, settings.handlers) == ("postgresql:///x", ("env",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[receivers]", "did you mean 'receiver'?"),
        ("[receiver]\nhandler = []", "[receiver] has no setting 'handler'; did you mean 'handlers'?"),
        (
            '[sources]\nprovider = "stripe"',
            "[sources] provider: expected a table, as [sources.stripe] is one",
        ),
        ('[sources.a]\nsecrets = "env:S"', "[sources.a] secrets: expected a list"),
        ('[sources.a]\nprovider = "strip"', "no provider is called 'strip'; did you mean 'stripe'?"),
        ('[sources.a]\nprovider = "stripe"\nsecret = []', "has no setting 'secret'; did you mean 'secrets'?"),
        ('[sources.a]\nprovider = "stripe"\nsecrets = ["env:S"]', "has no signing secret; set S"),
        ('[sources.a]\nprovider = "stripe"\nsecrets = ["whsec_plain"]', 'write "env:NAME" or "file:/path"'),
        (
            '[sources.a]\nprovider = "stripe"\nsecrets = ["file:/nowhere"]',
            "secret file /nowhere is missing or empty",
        ),
        ('[sources.a]\nprovider = "stripe"\nrepeats = "drop"', "repeats"),
        ('[sources.a]\nprovider = "stripe"\nwindow = 0', "window"),
        ('[sources.A]\nprovider = "stripe"', "the name must be 1 to 63 of a-z"),
        ('[sources.a]\nprovider = "hmac"\nhmac = { heder = "X" }', "did you mean 'header'?"),
        ('[sources.a]\nprovider = "stripe"\nstripe = { x = 1 }', "takes no options"),
        ('[receiver]\nproviders = ["./nowhere"]\n[sources.a]\nprovider = "acme"', "nowhere"),
        ("[sources", "not valid TOML"),
        ("[receiver]\nmax_body 5", "(at line 2, column 10): max_body …"),
        ("[sources.a]\nsecrets = [env:S]\n", "(at line 2, column 12): secrets = […]"),
        (
            '[commands.payments]\nhandler = "a:b"\nauth = {}\nname = "x"',
            "[commands.payments] has no setting 'name'; it has actor, ",
        ),
        ("[commands.payments]\nauth = {}", "[commands.payments] handler: is missing"),
        (
            '[sources.a]\nprovider = "stripe"\nquarantine = { keep = "1d" }',
            "[sources.a.quarantine] has no setting 'keep'",
        ),
        (
            '[receiver]\nkeep_events = "3d"\n[sources.github]',
            "its sender retries for 3 d; set [receiver] keep_events",
        ),
        ('[receiver]\nkeep_events = "1d"', "keep_events"),
        ("[admin]\ntrusted_proxies = 10", "[admin] trusted_proxies: expected a list"),
        (
            '[admin]\ntrusted_proxies = ["10.0.0.1", "proxy"]',
            "[admin] trusted_proxies: entry 2: 'proxy' is not an address or network",
        ),
    ],
)
def test_settings_explains_a_mistake(mistakes, text, expected):
    assert any(expected in mistake for mistake in mistakes(text)), mistakes(text)


@pytest.mark.parametrize(
    ("table", "model"),
    [("receiver", Settings), ("sources.a", Source), ("commands.a", Command), ("forwards.a", Forward)],
)
def test_settings_take_nothing_from_a_file_that_is_no_setting_of_its_table(mistakes, table, model):
    fields = sorted({each.name for each in dataclasses.fields(model)} - settings_of(model).keys())

    found = mistakes("\n".join([f"[{table}]", *(f'"{each}" = 1' for each in [*fields, NOT_WRITTEN])]))

    assert fields
    assert not [each for each in fields if not any(f"has no setting '{each}'" in line for line in found)]
    assert any(NOT_WRITTEN in line for line in found)


@pytest.mark.parametrize(
    ("variable", "said"),
    [("HOOKONCE_CONCURRENCY", "many"), ("HOOKONCE_SCHEMA", "pg_x"), ("HOOKONCE_DESK", "nowhere")],
)
def test_settings_name_the_variable_whose_value_is_wrong(mistakes, variable, said):
    (found,) = mistakes('[receiver]\nconcurrency = 3\ndesk = "off"', **{variable: said})

    assert found.startswith(f"{variable}: ")
    assert "expected" in found


def test_settings_lists_every_mistake_at_once(mistakes):
    text = '[receiver]\nhandler = []\nmax_body = 1\n[sources.a]\nprovider = "stripe"\nwindow = "x"'

    assert len(mistakes(text)) == 3


@pytest.mark.parametrize(
    ("wrong", "also_wrong"),
    [
        ("[receiver]\nmax_body = true", '[sources.a]\nprovider = "stripe"\nsecrets = ["env:S"]'),
        ("[receiver]\nhandlers = 3", '[sources.a]\nprovider = "stripe"\nsecret = ["env:S"]'),
        ('[sources.b]\nprovider = "stripe"\nwindow = "x"', '[sources.a]\nprovider = "strip"'),
        ('[sources.b]\nprovider = "stripe"\nwindow = "x"', 'heder = "X"'),
        ('[sources.b]\nprovider = "stripe"\nsecrets = "env:B"', 'heder = "X"'),
    ],
)
def test_settings_hide_no_mistake_behind_a_wrong_type(mistakes, wrong, also_wrong):
    alone = mistakes(wrong)

    both = mistakes(f"{wrong}\n{also_wrong}")

    assert len(both) > len(alone)
    assert set(alone) <= set(both)


def test_settings_make_no_mistake_of_a_table_whose_sender_is_unknown(mistakes):
    found = mistakes('[sources.a]\nprovider = 5\nsecrets = ["env:S"]')

    assert len(found) == 1
    assert "[sources.a] provider" in found[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('["SECRET ]', 'secrets = ["… ]'),
        ("[\n  SECRET,\n]", ":   …,"),
        ('[\n  "SECRET\n]', ':   "…'),
        ('"""\nSECRET', ": …"),
    ],
)
def test_settings_never_shows_a_secret_of_a_line_that_toml_can_not_read(mistakes, value, shown):
    (found,) = mistakes(f"[sources.a]\nsecrets = {value}".replace("SECRET", SECRET))

    assert shown in found
    assert SECRET not in found


def test_settings_never_shows_a_secret(mistakes):
    text = f'[receiver]\nmax_body = "{SECRET}"\n[sources.a]\nprovider = "stripe"\nsecrets = ["{SECRET}"]'

    assert SECRET not in "\n".join(mistakes(text))


def test_settings_of_a_worker_needs_no_secrets(load):
    text = '[sources.a]\nprovider = "stripe"\nsecrets = ["env:S", "file:/nowhere"]'

    settings = load(text, need_secrets=False)

    assert settings.sources["a"].secrets == ()


def test_settings_says_which_server_is_missing(tmp_path):
    settings = load_settings({"HOOKONCE_CONFIG": "/dev/null", "HOOKONCE_DATA": str(tmp_path)})

    with pytest.raises(ConfigError) as caught:
        require_servers(settings)

    assert len(caught.value.mistakes) == 2
    assert "set DATABASE_URL" in caught.value.mistakes[0]


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://u:s3cret%zz@host/db"),
        ("DATABASE_URL", "postgresql://u:s3cret/x@host/db"),
        ("DATABASE_URL", "postgresql://u:x@s3cret@host/db"),
        ("DATABASE_URL", "mysql://u:s3cret@host/db"),
        ("DATABASE_URL", "s3cret"),
        ("REDIS_URL", "redis://:s3cret/x@host/0"),
        ("REDIS_URL", "http://:s3cret@host"),
    ],
)
def test_settings_says_an_address_is_wrong_without_showing_it(mistakes, name, url):
    (mistake,) = mistakes("", **{name: url})

    assert f"correct {name}" in mistake
    assert "s3cret" not in mistake


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:p%40x@a,b:5433/db?sslmode=require",
        "postgresql+psycopg:///db?host=/run/postgresql&port=5433",
        "host=/run/postgresql dbname=hookonce",
    ],
)
def test_settings_takes_every_spelling_that_libpq_reads(load, url):
    assert load("", DATABASE_URL=url).database_url == url


SIGNS_URLS = """
[sources.sms]
provider = "twilio"
secrets = ["env:NEW"]
[sources.partner]
provider = "hmac"
secrets = ["env:NEW"]
hmac = {{ header = "X-Sig", signed = "{{url}}{{body}}", id = "$.id", type = "$.type" }}
{more}
"""


def test_settings_names_the_setting_where_a_sender_signs_its_url(mistakes):
    found = mistakes(SIGNS_URLS.format(more=""), NEW="secret")

    assert [mistake.split(",")[0] for mistake in found] == [
        "source 'sms' has no public_url",
        "source 'partner' has no public_url",
    ]
    assert all("[receiver]" in mistake for mistake in found)


@pytest.mark.parametrize(
    ("more", "environ", "expected"),
    [
        ('[receiver]\npublic_url = "https://a.example/"', {}, "https://a.example"),
        (
            '[receiver]\npublic_url = "https://a.example"',
            {"HOOKONCE_PUBLIC_URL": "https://b.example/in"},
            "https://b.example/in",
        ),
        ("", {"HOOKONCE_PUBLIC_URL": "http://localhost:8000"}, "http://localhost:8000"),
    ],
)
def test_settings_takes_the_public_url_from_the_environment_before_the_file(load, more, environ, expected):
    settings = load(SIGNS_URLS.format(more=more), NEW="secret", **environ)

    assert {source.public_url for source in settings.sources.values()} == {expected}


@pytest.mark.parametrize("url", ["https://a.example/in/sms?a=1", "env:URL_OF_SMS"])
def test_settings_needs_no_public_url_where_a_source_says_the_whole(load, url):
    settings = load(
        f'[sources.twilio]\nsecrets = ["env:NEW"]\nurl = "{url}"',
        NEW=SECRET,
        URL_OF_SMS="https://me:hush@a.example/in/sms",
    )

    source = settings.sources["twilio"]

    assert source.url in {url, "https://me:hush@a.example/in/sms"}
    assert "hush" not in repr(source) + source.shown_url
    assert (source.url_of("/hooks/twilio", "b=2") == source.url) == ("?" in url)


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("a.example/in", "url is not a whole URL"),
        ("https://", "url is not a whole URL"),
        ("https://a.example/in#hush", "url is not a whole URL"),
        ("env:NOT_SET", "url: NOT_SET is not set"),
    ],
)
def test_settings_refuses_a_url_that_is_not_whole(mistakes, url, wrong):
    found = mistakes(f'[sources.stripe]\nsecrets = ["env:NEW"]\nurl = "{url}"', NEW=SECRET)

    assert [wrong in mistake for mistake in found] == [True]
    assert "hush" not in found[0]


@pytest.mark.parametrize(
    "url", ["hooks.example.com", "https://", "https://a.example/?x=1", "https://u:p@a.example"]
)
def test_settings_refuses_a_public_url_that_is_none(mistakes, url):
    found = mistakes(f'[receiver]\npublic_url = "{url}"\n[sources.stripe]\nsecrets = ["env:NEW"]', NEW=SECRET)

    assert ["public_url is not a URL" in mistake for mistake in found] == [True]
    assert url not in found[0].replace("https://hooks.example.com", "")


def test_settings_traces_nothing_where_only_the_api_of_opentelemetry_is_there(load, mistakes, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)  # as where FastAPI brings the API alone

    assert load("", OTEL_EXPORTER_OTLP_ENDPOINT="http://c:4318").tracing is False
    assert "OpenTelemetry is not installed" in mistakes("[tracing]\nenabled = true")[0]
