from datetime import timedelta

import pytest

from hookonce.receiver.config.alerts import Rate

SECRET = "whsec_YWxlcnRzLW9mLXRoZS10ZXN0cw"


def test_alerts_have_sane_thresholds_unless_set(load):
    alerts = load("").alerts

    assert (alerts.are_sent, alerts.dead_runs, alerts.learn) == (False, Rate(1, timedelta(hours=1)), True)


def test_alerts_are_read_from_their_table(load):
    alerts = load(
        """
        [alerts]
        urls = ["https://a.example/in", "env:PAGER", "http://127.0.0.1:9/x"]
        secret = "env:SECRET"
        dead_runs = "off"
        signature_failures = "5/2h"
        oldest_due = "90s"
        """,
        PAGER="https://b.example/hidden",
        SECRET=SECRET,
    ).alerts

    assert [(each.kind, each.url) for each in alerts.targets] == [
        ("webhook", "https://a.example/in"),
        ("webhook", "https://b.example/hidden"),
        ("webhook", "http://127.0.0.1:9/x"),
    ]
    assert (alerts.secret, alerts.dead_runs) == (SECRET, None)
    assert (alerts.signature_failures, alerts.oldest_due) == (
        Rate(5, timedelta(hours=2)),
        timedelta(seconds=90),
    )
    assert not {SECRET, "hidden"} & set(repr(alerts).split("'"))


def test_alerts_may_lack_here_what_only_a_worker_needs(load):
    alerts = load('[alerts]\nurls = ["env:ABSENT"]\nsecret = "env:ABSENT"').alerts

    assert (alerts.are_sent, alerts.targets, alerts.secret) == (True, (), "")


def test_targets_are_read_from_tables_of_their_own(load):
    settings = load(
        """
        [alerts.slack]
        url = "env:SLACK"
        [alerts.teams]
        url = "env:ABSENT"
        [alerts.pagerduty]
        key = "env:DUTY"
        [alerts.mail]
        to = "ann@example.com"
        smtp = "env:SMTP"
        """,
        SLACK="https://hooks.slack.example/T0/B0/hidden",
        DUTY="key-of-an-integration",
        SMTP="smtps://ops%40example.com:pass%2Fword@mail.example.com",
    )

    assert settings.alerts.are_sent
    assert [(each.kind, each.url, each.to, each.sender) for each in settings.alerts.targets] == [
        ("slack", "https://hooks.slack.example/T0/B0/hidden", (), ""),
        ("teams", "", (), ""),
        ("pagerduty", "https://events.pagerduty.com/v2/enqueue", (), ""),
        (
            "mail",
            "smtps://ops%40example.com:pass%2Fword@mail.example.com",
            ("ann@example.com",),
            "ops@example.com",
        ),
    ]
    secrets = {"https://hooks.slack.example/T0/B0/hidden", "key-of-an-integration", "pass/word"}
    assert secrets <= set(settings.secrets())
    assert not [each for each in ("hidden", "key-of-an", "pass%2F") if each in repr(settings.alerts)]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('[alerts.slack]\nurl = "http://a.example"', "[alerts.slack] url: expected a reference"),
        (f'[alerts.slack]\nurl = "https://a.example/{SECRET}"', "[alerts.slack] url: expected a reference"),
        ("[alerts.slack]", "[alerts.slack] url: expected a reference"),
        ("[alerts.pagerduty]", "[alerts.pagerduty] key: a secret is given by reference; write"),
        (f'[alerts.pagerduty]\nkey = "{SECRET}"', "given by reference"),
        ('[alerts.mail]\nto = []\nsmtp = "smtp://a.example"', "[alerts.mail] to"),
        ('[alerts.mail]\nto = "a@a.example"\nsmtp = "https://a.example"', "expected smtp://HOST"),
        (f'[alerts.mail]\nto = "a@a.example"\nsmtp = "smtp://a:{SECRET}@a.example"', "a reference"),
        ('[alerts]\nurl = "x"', "did you mean 'urls'"),
        ('[alerts]\nurls = ["http://a.example"]\nsecret = "env:S"', "https://"),
        ('[alerts]\nurls = ["https://a.example"]', "no secret to sign with"),
        (f'[alerts]\nsecret = "{SECRET}"', "given by reference"),
        ('[alerts]\ndead_runs = "many"', "20/10m"),
        ('[alerts]\nsignature_failures = "3/8d"', "1m to 7d"),
        ('[alerts]\nredis = "soon"', "90s"),
        ('[sources.stripe]\nsecrets = ["env:S"]\nexpect_every = "often"', "expect_every: expected a number"),
        ('[sources.hookonce]\nprovider = "stripe"\nsecrets = ["env:S"]', "kept for our own events"),
    ],
)
def test_alerts_mistakes_say_what_was_expected(mistakes, text, mistake):
    (found,) = mistakes(text, S=SECRET)

    assert mistake in found
    assert SECRET not in found


def test_source_may_say_how_often_it_delivers(load):
    settings = load('[sources.stripe]\nsecrets = ["env:S"]\nexpect_every = "6h"', S=SECRET)

    assert settings.sources["stripe"].expect_every == timedelta(hours=6)
