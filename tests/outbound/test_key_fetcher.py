import contextlib
import io
import json
import threading
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
import requests
import responses
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from hookonce.providers import KeyNeeded, Reason, Rejected
from hookonce.providers.amazon_sns import configure as sns
from hookonce.providers.kit import Configured, Sender
from hookonce.providers.kit.provider import provider
from hookonce.providers.paypal import sender as paypal
from hookonce.receiver.outbound import fetch_limits, key_fetcher
from hookonce.receiver.outbound.key_fetcher import KeyFetcher, KeyUnavailable
from hookonce.receiver.source import Source

URL = "https://keys.example.com/set"
SNS = sns({"topics": ["arn:aws:sns:eu-west-1:1:name"]}).sender.fetches
PAYPAL = paypal.fetches


class Torn(io.RawIOBase):
    """An answer that ends before it is whole."""

    def readable(self):
        return True

    def readinto(self, _):
        raise ProtocolError("Connection broken")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(clock):
    return KeyFetcher(clock)


@pytest.fixture
def web():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


def source(
    wanted=(URL,), fetches=(r"https://keys\.example\.com/[a-z0-9]+(?:#[a-z0-9]+)?",), enough=bool, post=None
):
    """A source whose provider wants documents, and is content with those that are `enough`."""

    def verify(*_, keys):
        for url in wanted:
            if not enough(keys.get(url, b"")):
                raise KeyNeeded(url, post)
        return [keys[url] for url in wanted]

    declared = Sender(id_is_signed=True, body_is_unsigned=False, retry_horizon=None, fetches=fetches)
    made = Configured(verify=verify, events=list, sign=dict, sender=declared)
    return Source("acme", provider("acme", made, "here"), ("secret",))


def fetch(keys, place):
    return keys.call_with_keys(place, place.provider.verify, None, (), None)


def test_document_is_fetched_once_and_kept(keys, web):
    web.get(URL, body=b"one")

    found = [fetch(keys, source()) for _ in range(3)]

    assert found == [[b"one"]] * 3
    assert len(web.calls) == 1
    assert "Authorization" not in web.calls[0].request.headers


def test_credentials_are_posted_and_never_shown(keys, web):
    web.post("https://keys.example.com/get", status=500)
    place = source(("https://keys.example.com/get#k1",), post=b'{"secret":"hush-hush"}')

    with pytest.raises(KeyUnavailable) as error:
        fetch(keys, place)

    assert web.calls[0].request.body == b'{"secret":"hush-hush"}'
    assert "hush" not in repr(error.value) + repr(KeyNeeded("https://keys.example.com/get", b"hush"))


def test_document_is_fetched_anew_after_an_hour_and_the_old_one_serves_if_that_fails(keys, clock, web):
    web.get(URL, body=b"one")
    fetch(keys, source())
    web.replace(responses.GET, URL, status=503)

    clock.now += key_fetcher.FRESH_TTL.total_seconds() + 1
    stale = fetch(keys, source())
    clock.now += key_fetcher.STALE_TTL.total_seconds()

    assert stale == [b"one"]
    with pytest.raises(KeyUnavailable):
        fetch(keys, source())


def test_unknown_key_refreshes_the_set_at_most_once_a_minute(keys, clock, web):
    web.get(URL, body=b"old")
    place = source(enough=lambda document: document == b"new")

    for _ in range(5):
        with pytest.raises(Rejected) as error:
            fetch(keys, place)
    assert error.value.reason == Reason.BAD_SIGNATURE
    assert len(web.calls) == 1

    web.replace(responses.GET, URL, body=b"new")
    clock.now += key_fetcher.REFETCH_INTERVAL.total_seconds() + 1
    assert fetch(keys, place) == [b"new"]
    assert len(web.calls) == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 302, "headers": {"Location": "https://evil.example/set"}},
        {"status": 301, "headers": {"Location": "http://169.254.169.254/latest"}},
        {"status": 404},
        {"status": 500},
        {"body": b"x" * (key_fetcher.MAX_DOCUMENT_SIZE + 1)},
        {"body": b"x", "headers": {"Content-Encoding": "gzip"}},
        {"body": requests.exceptions.SSLError("self-signed certificate")},
        {"body": requests.exceptions.ConnectTimeout("slow")},
    ],
    ids=["redirect", "redirect-inside", "missing", "broken", "huge", "compressed", "bad-tls", "slow"],
)
def test_what_is_no_plain_document_is_unavailable_and_not_followed(keys, web, answer):
    web.get(URL, **answer)

    with pytest.raises(KeyUnavailable):
        fetch(keys, source())

    assert [call.request.url for call in web.calls] == [URL]


def test_failing_host_is_left_alone_for_longer_and_longer(keys, clock, web):
    web.get(URL, status=503)

    tries = []
    for _ in range(120):
        with pytest.raises(KeyUnavailable):
            fetch(keys, source())
        tries.append(len(web.calls))
        clock.now += 1

    assert tries[0] == 1
    assert 5 <= tries[-1] <= 8

    web.replace(responses.GET, URL, body=b"back")
    clock.now += 61
    assert fetch(keys, source()) == [b"back"]


def test_missing_document_does_not_keep_others_of_its_host_away(keys, web):
    web.get("https://keys.example.com/forged", status=404)
    web.get(URL, body=b"one")

    with pytest.raises(KeyUnavailable):
        fetch(keys, source(("https://keys.example.com/forged",)))

    assert fetch(keys, source()) == [b"one"]


def test_host_that_breaks_off_its_answer_is_left_alone(keys, web):
    web.get(URL, body=io.BufferedReader(Torn()))

    for _ in range(2):
        with pytest.raises(KeyUnavailable):
            fetch(keys, source())

    assert len(web.calls) == 1


def test_flood_of_forged_names_is_cut_short_and_known_keys_go_on(keys, web):
    web.get(URL, body=b"one")
    fetch(keys, source())
    for number in range(100):
        web.get(f"https://keys.example.com/forged{number}", status=404)

    for number in range(100):
        with pytest.raises(KeyUnavailable):
            fetch(keys, source((f"https://keys.example.com/forged{number}",)))

    assert len(web.calls) <= 30
    assert fetch(keys, source()) == [b"one"]


class Forger:
    """Sends deliveries that name what it likes, and verify with nothing; `answer` is what is found there."""

    def __init__(self, keys, web, **answer):
        self.keys, self.web, self.number, self.answer = keys, web, 0, answer or {"status": 404}

    def send(self, times=1, *, names=None):
        for _ in range(times):
            self.number += 1
            name = names[self.number % len(names)] if names else f"forged{self.number}"
            url = f"https://keys.example.com/{name}"
            self.web.upsert(responses.GET, url, **self.answer)
            with pytest.raises((KeyUnavailable, Rejected)):
                fetch(self.keys, source((url,), enough=rejects))


def rejects(document):
    """Whether a forged delivery is content with a document: with none, and with any it is rejected."""
    if document:
        raise Rejected(Reason.BAD_SIGNATURE, "forged")
    return False


@pytest.mark.parametrize(
    "answer", [{"status": 404}, {"status": 500}, {"status": 429}, {"body": b"another's"}]
)
def test_proven_key_is_fetched_anew_whatever_strangers_name(keys, clock, web, answer):
    web.get(URL, body=b"one")
    fetch(keys, source())
    web.replace(responses.GET, URL, body=b"two")
    clock.now += key_fetcher.FRESH_TTL.total_seconds() + 1

    Forger(keys, web, **answer).send(200)

    assert fetch(keys, source()) == [b"two"]


def test_proven_key_is_fetched_beside_fetches_of_strangers_that_hang(keys, clock, web):
    web.get(URL, body=b"one")
    fetch(keys, source())
    clock.now += key_fetcher.STALE_TTL.total_seconds() + 1
    release = threading.Event()
    patient, keys.fetch_timeout = keys.fetch_timeout, timedelta(seconds=0.1)
    for number in range(8):
        hung = f"https://keys.example.com/hung{number}"
        web.add_callback(responses.GET, hung, lambda _: (release.wait(20), (404, {}, b""))[1])
        with pytest.raises(KeyUnavailable):
            fetch(keys, source((hung,)))

    keys.fetch_timeout = patient
    assert fetch(keys, source()) == [b"one"]
    release.set()


@pytest.mark.parametrize("between", [1, 20, 300], ids=["few", "some", "many"])
@pytest.mark.parametrize("answer", [{"status": 404}, {"status": 500}, {"body": b"another's"}])
def test_rotated_key_gets_through_a_flood_of_made_up_names(keys, clock, web, answer, between):
    web.get(URL, body=b"one")
    fetch(keys, source())
    rotated = "https://keys.example.com/rotated"
    web.get(rotated, body=b"new")
    flood = Forger(keys, web, **answer)
    flood.send(100)

    tries = 0
    while rotated not in [call.request.url for call in web.calls]:
        tries += 1
        assert tries <= 6
        with contextlib.suppress(KeyUnavailable):
            fetch(keys, source((rotated,)))
        flood.send(between)
        clock.now += 5

    assert fetch(keys, source((rotated,))) == [b"new"]


def test_rotated_key_gets_through_a_flood_that_repeats_its_names(keys, clock, web):
    flood = Forger(keys, web)
    flood.send(300, names=[f"forged{number}" for number in range(100)])
    rotated = "https://keys.example.com/rotated"
    web.get(rotated, body=b"new")

    for _ in range(20):
        with contextlib.suppress(KeyUnavailable):
            fetch(keys, source((rotated,)))
        flood.send(1)
        clock.now += 3

    assert fetch(keys, source((rotated,))) == [b"new"]


def test_forged_names_cost_a_bounded_number_of_fetches_a_minute(keys, clock, web):
    for status in (404, 500):
        calls = len(web.calls)
        flood = Forger(keys, web, status=status)
        for _ in range(60):
            flood.send(20)
            clock.now += 1

        assert 1 < len(web.calls) - calls <= 30
        clock.now += 60


def test_name_is_proven_by_a_delivery_that_verified_and_by_nothing_else(keys, web):
    forged = "https://keys.example.com/forged"
    web.get(forged, body=b"another's")
    place = source((forged,))
    handshake = lambda *_, keys: rejects(keys.get(forged, b"")) or None  # noqa: E731
    found = []

    for function in (handshake, lambda *_, keys: None if keys else place.provider.verify(keys=keys)):
        with contextlib.suppress(Rejected):
            keys.call_with_keys(place, function, None, ())
        found.append(list(keys._proven.documents))  # noqa: SLF001  # nothing else tells at once
    fetch(keys, place)

    assert found == [[], []]
    assert list(keys._proven.documents) == [forged]  # noqa: SLF001


def test_confirmation_is_none_of_the_fetches_of_strangers(keys, web):
    url = "https://keys.example.com/confirm"
    web.get(url, body=b"ok")
    Forger(keys, web).send(100)

    keys.confirm(source(), url)

    assert web.calls[-1].request.url == url


def test_books_stay_bounded(clock, web, monkeypatch):
    for name, bound in (("MAX_DOCUMENTS", 3), ("MAX_BACKOFFS", 4), ("MAX_WANTED_NAMES", 5)):
        monkeypatch.setattr(fetch_limits, name, bound)
    keys = KeyFetcher(clock)
    for number in range(9):
        web.get(f"https://keys.example.com/n{number}", body=b"x")
        fetch(keys, source((f"https://keys.example.com/n{number}",)))
    Forger(keys, web, body=b"another's").send(9)
    clock.now += 61
    Forger(keys, web).send(100)

    # nothing else tells
    proven, strangers = keys._proven, keys._strangers  # noqa: SLF001
    assert (len(proven.documents), len(strangers.documents), len(strangers.backoffs)) == (3, 3, 4)
    assert len(strangers.budgets["acme"].wanted._asked) <= 5  # noqa: SLF001
    assert not proven.backoffs


def test_hung_server_holds_a_delivery_for_a_bounded_time_and_other_sources_not_at_all(web):
    release = threading.Event()
    web.add_callback(responses.GET, URL, lambda _: (release.wait(60), (200, {}, b"late"))[1])
    web.get("https://keys.example.com/other", body=b"one")
    keys, errors = KeyFetcher(fetch_timeout=timedelta(seconds=1)), []

    def hang():
        with pytest.raises(KeyUnavailable) as error:
            fetch(keys, source())
        errors.append(error.value)

    waiting = [threading.Thread(target=hang) for _ in range(20)]
    for thread in waiting:
        thread.start()
    other = Source("other", source(("https://keys.example.com/other",)).provider, ("secret",))
    assert fetch(keys, other) == [b"one"]
    for thread in waiting:
        thread.join()
    release.set()

    assert len(errors) == 20
    assert len([call for call in web.calls if call.request.url == URL]) <= 1


def test_answer_that_drips_is_given_up(keys, web, monkeypatch):
    keys.fetch_timeout = timedelta(seconds=0.2)
    monkeypatch.setattr(key_fetcher, "_READ_SIZE", 1)

    def drip(_):
        time.sleep(0.3)  # as long as the first bytes take
        return 200, {}, b"x" * 1000

    web.add_callback(responses.GET, URL, drip)

    with pytest.raises(KeyUnavailable):
        fetch(keys, source())


@pytest.mark.parametrize(
    "error", [ReadTimeoutError(None, URL, "slow"), ProtocolError("cut off"), OSError("gone")]
)
def test_body_that_breaks_off_is_a_fault_of_the_host(keys, web, monkeypatch, error):
    def broken(*_):
        raise error

    web.get(URL, body=b"one")
    monkeypatch.setattr(key_fetcher, "_content", broken)

    for _ in range(3):
        with pytest.raises(KeyUnavailable):
            fetch(keys, source())

    assert len(web.calls) == 1


FORBIDDEN = [
    "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com.evil.example/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com@evil.example/SimpleNotificationService-1.pem",
    "https://user:pass@sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com:8443/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com:443/SimpleNotificationService-1.pem",
    "https://evil.example/sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
    "https://evilsns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.s3.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.s3-us-west-2.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.s3.us-west-2.amazonaws.com/SimpleNotificationService-1.pem",
    "https://s3.amazonaws.com/sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com/bucket/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com/../SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem?x=.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem#.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem\n",
    "https://sns.us-east-1.amazonaws.com\\@evil.example/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com%2eevil.example/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com./SimpleNotificationService-1.pem",
    "https://SNS.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.us-e\u0430st-1.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.us-east-\u0661.amazonaws.com/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com/?Action=DeleteTopic&TopicArn=arn:aws:sns:us-east-1:1:x",
    "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=" + "a" * 2000,
    "file:///etc/passwd",
    "//sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
    "",
]
FORBIDDEN_PAYPAL = [
    "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
    "https://evil.paypal.com/v1/notifications/certs/CERT-1",
    "https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1",
    "https://api.paypal.com:444/v1/notifications/certs/CERT-1",
    "https://api.paypal.com/v1/notifications/certs/../../oauth2/token",
    "https://api.paypal.com/v1/notifications/certs/CERT-1?redirect=https://evil.example",
    "http://api.paypal.com/v1/notifications/certs/CERT-1",
    "https://apiXpaypal.com/v1/notifications/certs/CERT-1",
]


@pytest.mark.parametrize(
    ("url", "fetches"), [(url, SNS) for url in FORBIDDEN] + [(url, PAYPAL) for url in FORBIDDEN_PAYPAL]
)
def test_url_that_is_not_the_senders_is_refused_and_never_fetched(keys, web, url, fetches):
    place = source((url,), fetches)

    for attempt in (lambda: fetch(keys, place), lambda: keys.confirm(place, url)):
        with pytest.raises(Rejected) as error:
            attempt()
        assert error.value.reason == Reason.BAD_SIGNATURE

    assert not web.calls


def test_confirmation_is_fetched_each_time_and_must_succeed(keys, web):
    url = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:eu-west-1:1:n&Token=t"
    web.get(url, body=b"<ok/>")

    keys.confirm(source(fetches=SNS), url)
    keys.confirm(source(fetches=SNS), url)
    web.replace(responses.GET, url, status=403)

    assert len(web.calls) == 2
    with pytest.raises(KeyUnavailable):
        keys.confirm(source(fetches=SNS), url)


def test_pattern_that_is_not_https_is_a_bug_of_the_provider():
    with pytest.raises(ValueError, match="https://"):
        key_fetcher.may_fetch("http://a.example/x", (r"http://a\.example/.*",))


def test_provider_without_keys_is_called_as_it_is(keys):
    place = SimpleNamespace(provider=SimpleNamespace(takes_keys=False))

    assert keys.call_with_keys(place, lambda *given: json.dumps(given), 1, 2) == "[1, 2]"


def test_credentials_of_the_machine_are_sent_to_nobody(keys, web, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine keys.example.com login ann password of-the-machine")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    web.get(URL, body=b"a key")

    fetch(keys, source())

    assert "Authorization" not in web.calls[0].request.headers
