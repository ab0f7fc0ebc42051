import json
import socket
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography import x509

from hookonce.jobs import drain
from hookonce.jobs.alerts import delivery as alert_delivery
from hookonce.jobs.handlers import Registry
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.alerts import Alerts, Chat, Mail, PagerDuty
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger import alerts as ledger_alerts
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.replay.events import replay
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.store import store
from hookonce.receiver.monitoring import alert_events
from tests.support.attacks import certificate
from tests.support.issues import ID, die_of
from tests.support.mail_server import MailServer, served
from tests.support.waiting import until

SECRET = "whsec_YWxlcnRzLW9mLXRoZS10ZXN0cw"


class Pager(HTTPServer):
    """Takes alerts; answers with the codes it is told, 200 after that, but not while `may_answer` is clear."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Taking)
        self.taken, self.codes = [], []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.url = f"http://127.0.0.1:{self.server_port}/in?key=hidden"


class Taking(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.taken.append(Delivery("POST", self.path, headers, body))
        self.server.may_answer.wait(20)
        self.send_response(self.server.codes.pop(0) if self.server.codes else 200)
        self.send_header("location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(autouse=True)
def turn(monkeypatch):
    """Wait for answers on a machine that stands still for seconds; return what is waited otherwise."""
    usual = alert_delivery.TURN
    monkeypatch.setattr(alert_delivery, "TURN", timedelta(minutes=1))
    return usual


@pytest.fixture
def pager():
    with served(Pager()) as server:
        yield server
        server.may_answer.set()


@pytest.fixture
def silent(pager, monkeypatch):
    """A pager that does not answer for now, to a worker that does not wait for it."""
    monkeypatch.setattr(alert_delivery, "TURN", timedelta(0))
    pager.may_answer.clear()
    return pager


@pytest.fixture
def mail_server():
    with served(MailServer()) as server:
        yield server


@pytest.fixture
def alerted(inbox, pager):
    """Stores a test alert for a worker that delivers to the pager."""
    settings = Alerts(urls=(pager.url,), secret=SECRET)
    alert_delivery.register(inbox.registry, settings)

    def alert():
        event = alert_events.test_event(datetime.now(UTC))
        return store(inbox.connection, [event])[event.key].id

    return alert


def test_alert_arrives_signed_as_standard_webhooks_say(inbox, pager, alerted):
    alerted()

    inbox.work()

    (delivery,) = pager.taken
    provider = load("standard_webhooks", (), None)
    provider.verify(delivery, [SECRET], datetime.now(UTC))
    (event,) = provider.events(delivery)
    assert (event.type, event.id[:11]) == ("alert.test", "alert_test_")


@pytest.mark.parametrize(("code", "status"), [(500, "waiting"), (302, "waiting"), (410, "dead")])
def test_alert_that_is_not_taken_is_tried_again_unless_gone(inbox, pager, alerted, code, status):
    pager.codes = [code]
    alerted()

    inbox.work()

    assert inbox.rows("SELECT status FROM hookonce.run_states") == [(status,)]
    assert "hidden" not in inbox.rows("SELECT error FROM hookonce.failures")[0][0]
    assert len(pager.taken) == 1


def test_alert_keeps_its_id_on_every_attempt(inbox, pager, alerted):
    pager.codes = [503]
    alerted()
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    inbox.work()

    first, second = pager.taken
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert inbox.rows("SELECT status FROM hookonce.run_states") == [("done",)]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (Alerts(urls=("https://a.example",), secret=""), "secret"),
        (Alerts(urls=("https://a.example",), secret="whsec_?"), "secret"),
        (Alerts(urls=("", "https://a.example"), secret=SECRET), "urls: it is not set"),
    ],
)
def test_worker_that_can_not_send_alerts_says_so_at_its_start(settings, complaint):
    with pytest.raises(ConfigError, match=complaint) as caught:
        alert_delivery.register(Registry(), settings)

    assert "whsec_?" not in str(caught.value)


def test_worker_lists_every_target_that_lacks_its_secret():
    chat, mail = Chat(), Mail(to=("ann@example.com",))
    settings = Alerts(urls=("",), slack=chat, teams=chat, discord=chat, pagerduty=PagerDuty(), mail=mail)

    with pytest.raises(ConfigError) as caught:
        alert_delivery.register(Registry(), settings)

    assert [each.partition(":")[0] for each in caught.value.mistakes] == [
        "[alerts] secret",
        "[alerts] urls",
        "[alerts.slack] url",
        "[alerts.teams] url",
        "[alerts.discord] url",
        "[alerts.pagerduty] key",
        "[alerts.mail] smtp",
    ]


def test_alerts_have_a_handler_for_each_url():
    registry = Registry()
    urls = ("https://a.example/1", "https://a.example/2", "https://a.example/1")

    alert_delivery.register(registry, Alerts(urls=urls, secret=SECRET))

    assert len(registry.matching("hookonce", "hookonce", "alert.raised")) == 2
    assert max(handler.timeout for handler in registry) > timedelta(seconds=sum(alert_delivery.TIMEOUT))


LINK = f"https://inbox.example.com/admin/issues/{ID}"


@pytest.fixture
def everywhere(pager, mail_server):
    """Targets of each kind, with servers on this machine."""
    chat = Chat(url=pager.url)
    return Alerts(
        slack=chat,
        teams=chat,
        discord=chat,
        pagerduty=PagerDuty(key="k" * 32, url=pager.url),
        mail=Mail(
            to=("ann@example.com", "bob@example.com"),
            smtp=f"smtp://ops%40example.com:pass@127.0.0.1:{mail_server.port}",
        ),
    )


@pytest.fixture
def tell(inbox):
    """Stores the event of an alert about an issue, raised or over, for a worker to deliver."""

    def tell(*, ended=None, text=None):
        if not ended:
            die_of(inbox.connection, "evt", place="shop/<a&b>.py:12")
        now = datetime.now(UTC)
        alert = Alert(id=7, kind="new_issue", subject=ID, detail="…", since=now, ended_at=ended)
        issue = issues.get(inbox.connection, ID)
        store(inbox.connection, [alert_events.alert_event(alert, "https://inbox.example.com", issue, text)])

    return tell


def sent(pager):
    """Return what each of the targets that are told by HTTP was sent."""
    bodies = [json.loads(each.body) for each in pager.taken]
    keys = {"slack": "text", "teams": "attachments", "discord": "content", "pagerduty": "routing_key"}
    return {kind: [body for body in bodies if key in body] for kind, key in keys.items()}


def test_every_kind_of_target_gets_one_message_in_its_own_form(inbox, pager, mail_server, everywhere, tell):
    alert_delivery.register(inbox.registry, everywhere)
    tell()

    inbox.work()

    found = sent(pager)
    assert {kind: len(bodies) for kind, bodies in found.items()} == dict.fromkeys(found, 1)
    ((slack,), (teams,), (discord,), (duty,)) = found.values()
    facts = ["new issue: ValueError in shop.credit", "failed attempts: 1, dead events: 1", "release: v1"]
    assert slack["text"].startswith(f"{facts[0]}\nplace: shop/&lt;a&amp;b&gt;.py:12\n")
    assert discord["allowed_mentions"] == {"parse": []}
    card = teams["attachments"][0]
    assert (teams["type"], card["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    assert card["content"]["actions"][0]["url"] == LINK
    assert (duty["routing_key"], duty["event_action"]) == ("k" * 32, "trigger")
    assert duty["payload"].keys() >= {"summary", "source", "severity"}
    (mail,) = mail_server.mails
    assert mail["subject"] == f"[hookonce] {facts[0]}"
    assert mail["to"] == "ann@example.com, bob@example.com"
    for text in (slack["text"], json.dumps(teams), discord["content"], json.dumps(duty), mail.get_content()):
        assert [fact for fact in [*facts, LINK] if fact not in text] == []
        assert "customer" not in text
    assert len(mail_server.logins) == 1


def test_message_that_it_is_over_resolves_the_incident_that_was_opened(inbox, pager, everywhere, tell):
    alert_delivery.register(inbox.registry, replace(everywhere, mail=None))
    tell()
    tell(ended=datetime.now(UTC))

    inbox.work()

    opened, resolved = sent(pager)["pagerduty"]
    assert [each["event_action"] for each in (opened, resolved)] == ["trigger", "resolve"]
    assert opened["dedup_key"] == resolved["dedup_key"]
    assert [each["text"].partition(":")[0] for each in sent(pager)["slack"]] == ["new issue", "over"]


def test_messages_quote_the_text_of_an_error_where_the_event_has_it(
    inbox, pager, mail_server, everywhere, tell
):
    alert_delivery.register(inbox.registry, everywhere)
    tell(text="ValueError: no such customer")

    inbox.work()

    assert "no such customer" in sent(pager)["slack"][0]["text"]
    assert "no such customer" in mail_server.mails[0].get_content()


def test_target_that_is_away_delays_no_other_and_doctor_is_told(inbox, mail_server, everywhere, tell):
    alert_delivery.register(inbox.registry, replace(everywhere, slack=Chat(url="http://127.0.0.1:1/hidden")))
    mail_server.refuses = 451
    tell()

    inbox.work()

    rows = inbox.rows("SELECT handler, status FROM hookonce.run_states WHERE handler LIKE 'hookonce.%'")
    states = {handler.rpartition(" ")[2]: status for handler, status in rows}
    assert states.pop("slack") == states.pop("mail") == "waiting"
    assert set(states.values()) == {"done"}
    away = {
        handler.rpartition(" ")[2]: error for handler, error, _ in ledger_alerts.unreached(inbox.connection)
    }
    assert "127.0.0.1 did not answer: ConnectionError" in away["slack"]
    assert "127.0.0.1 answered 451; expected 250" in away["mail"]
    assert "hidden" not in str(away)


def test_target_that_never_answers_delays_no_other_and_is_charged_once_it_had_its_time(
    inbox, pager, everywhere, tell, turn, monkeypatch
):
    monkeypatch.setattr(alert_delivery, "TURN", turn)
    monkeypatch.setattr(alert_delivery, "TIMEOUT", (1, 10))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/hidden"
        alert_delivery.register(inbox.registry, Alerts(slack=Chat(url=url), teams=everywhere.teams))
        tell()
        began = time.monotonic()
        inbox.work()

        assert len(pager.taken) == 1
        assert time.monotonic() - began < 9
        assert inbox.rows("SELECT handler FROM hookonce.failures WHERE handler LIKE 'hookonce.%'") == []
        made_due = "UPDATE hookonce.queue SET due_at = now() WHERE handler LIKE 'hookonce.%'"
        until(
            lambda: (
                [inbox.connection.execute(made_due), inbox.work()]
                and ledger_alerts.unreached(inbox.connection)
            )
        )

    ((handler, error, _),) = ledger_alerts.unreached(inbox.connection)
    assert (handler[-5:], "did not answer: ReadTimeout" in error) == ("slack", True)


@pytest.mark.parametrize("kind", ["slack", "mail"])
def test_answer_that_comes_late_is_found_by_the_next_attempt(
    inbox, pager, mail_server, everywhere, tell, monkeypatch, kind
):
    monkeypatch.setattr(alert_delivery, "TURN", timedelta(0))
    alert_delivery.register(inbox.registry, Alerts(**{kind: getattr(everywhere, kind)}))
    tell()

    def done():
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
        inbox.work()
        return inbox.rows("SELECT attempts FROM hookonce.runs WHERE status = 'done'")

    assert until(done) == [(1,)]
    assert len(pager.taken) + len(mail_server.mails) == 1


def test_replay_of_an_alert_that_another_process_has_sent_is_sent(inbox, silent, alerted, monkeypatch):
    ours, theirs = {}, {}

    def work(under_way):
        monkeypatch.setattr(alert_delivery, "_under_way", under_way)
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
        inbox.work()

    event = alerted()
    work(ours)
    silent.may_answer.set()
    monkeypatch.setattr(alert_delivery, "TURN", timedelta(minutes=1))
    work(theirs)
    list(replay(inbox.connection, [event], "me", again=True))
    work(ours)

    assert len(silent.taken) == 3
    assert inbox.rows("SELECT status FROM hookonce.run_states") == [("done",)]


@pytest.mark.parametrize(("hours", "is_kept"), [(2, False), (0, True)])
@pytest.mark.usefixtures("silent")
def test_answer_that_no_attempt_asked_for_is_forgotten_in_the_end(
    inbox, alerted, monkeypatch, hours, is_kept
):
    answer = Future()
    answer.set_result({})
    under_way = {"another": (datetime.now(UTC) - timedelta(hours=hours), answer)}
    monkeypatch.setattr(alert_delivery, "_under_way", under_way)
    alerted()

    inbox.work()

    assert ("another" in under_way, len(under_way)) == (is_kept, 1 + is_kept)


@pytest.mark.usefixtures("silent")
def test_alert_is_put_off_for_the_longest_pause_at_most(inbox, alerted):
    alerted()
    for table in ("events", "bodies", "queue"):
        inbox.connection.execute(
            f"UPDATE hookonce.{table} SET received_at = received_at - interval '50 minutes'"  # noqa: S608
        )

    inbox.work()

    ((wait,),) = inbox.rows("SELECT due_at - now() FROM hookonce.queue")
    assert alert_delivery.PUT_OFF < wait <= alert_delivery.BACKOFF[1]


def test_process_that_ends_with_its_job_waits_for_the_answer(inbox, silent, alerted, monkeypatch):
    inbox.work()
    threading.Timer(0.2, silent.may_answer.set).start()
    monkeypatch.setattr(drain, "process_claimer", lambda: inbox.drains[0])

    drain.perform([alerted()])

    assert inbox.rows("SELECT status, attempts FROM hookonce.runs") == [("done", 1)]
    assert len(silent.taken) == 1


def test_target_that_is_away_is_given_up_after_an_hour(inbox, pager, everywhere, tell):
    alert_delivery.register(inbox.registry, Alerts(slack=everywhere.slack))
    pager.codes = [500, 500]
    tell()
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    inbox.connection.execute(
        "UPDATE hookonce.events SET received_at = received_at - interval '61 minutes';"
        "UPDATE hookonce.bodies SET received_at = received_at - interval '61 minutes';"
        "UPDATE hookonce.queue SET received_at = received_at - interval '61 minutes'"
    )

    inbox.work()

    of_alert = "WHERE handler LIKE 'hookonce.%'"
    assert inbox.rows(f"SELECT status FROM hookonce.run_states {of_alert}") == [("dead",)]  # noqa: S608
    assert "tried for an hour" in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id DESC")[0][0]


def test_attempts_suffice_for_an_hour_however_short_the_pauses_are():
    first, longest = (span.total_seconds() for span in alert_delivery.BACKOFF)

    shortest = sum(min(longest, first * 2**n) / 2 for n in range(alert_delivery.ATTEMPTS - 1))

    assert shortest > alert_delivery.TRIED_FOR.total_seconds()


def test_no_password_is_sent_to_a_server_elsewhere_that_does_not_encrypt(inbox, mail_server, monkeypatch):
    monkeypatch.setattr(alert_delivery, "LOOPBACK", frozenset())
    url = f"smtp://ann:pass@127.0.0.1:{mail_server.port}"
    alert_delivery.register(inbox.registry, Alerts(mail=Mail(to=("ann@example.com",), smtp=url)))
    store(inbox.connection, [alert_events.test_event(datetime.now(UTC))])

    inbox.work()

    assert "offers no STARTTLS" in inbox.rows("SELECT error FROM hookonce.failures")[0][0]
    assert (mail_server.logins, mail_server.mails) == ([], [])


def told_by_mail(inbox, scheme, server):
    """Have a test alert sent by mail."""
    smtp = f"{scheme}://ann:pass@127.0.0.1:{server.port}"
    alert_delivery.register(inbox.registry, Alerts(mail=Mail(to=("ann@example.com",), smtp=smtp)))
    store(inbox.connection, [alert_events.test_event(datetime.now(UTC))])
    inbox.work()


@pytest.mark.parametrize("scheme", ["smtps", "smtp"])
def test_mail_is_sent_encrypted_to_a_server_that_can(inbox, tmp_path, monkeypatch, scheme):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    monkeypatch.setattr(alert_delivery, "LOOPBACK", frozenset())
    context = certificate.serving(tmp_path)

    with served(MailServer(context, offers_starttls=scheme == "smtp")) as server:
        told_by_mail(inbox, scheme, server)

    assert (len(server.logins), len(server.mails)) == (1, 1)


REFUSED = {
    "unknown authority": (certificate.NAMES, False, "self-signed certificate"),
    "another name": ([x509.DNSName("mail.example")], True, "IP address mismatch"),
}


@pytest.mark.parametrize("scheme", ["smtps", "smtp"])
@pytest.mark.parametrize(("names", "is_trusted", "reason"), REFUSED.values(), ids=REFUSED)
def test_mail_server_with_a_wrong_certificate_gets_no_mail(
    inbox, tmp_path, monkeypatch, scheme, names, is_trusted, reason
):
    context = certificate.serving(tmp_path, names)
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))

    with served(MailServer(context, offers_starttls=scheme == "smtp")) as server:
        told_by_mail(inbox, scheme, server)

    ((_, error, _),) = ledger_alerts.unreached(inbox.connection)
    assert f"the certificate of 127.0.0.1 is refused ({reason}" in error
    assert "SSL_CERT_FILE" in error
    assert (server.logins, server.mails) == ([], [])


def test_webhook_with_a_wrong_certificate_gets_no_alert(inbox, tmp_path):
    with served(Pager()) as server:
        server.socket = certificate.serving(tmp_path).wrap_socket(server.socket, server_side=True)
        url = f"https://127.0.0.1:{server.server_port}/hidden"
        alert_delivery.register(inbox.registry, Alerts(slack=Chat(url=url)))
        store(inbox.connection, [alert_events.test_event(datetime.now(UTC))])
        inbox.work()

    ((_, error, _),) = ledger_alerts.unreached(inbox.connection)
    assert "the certificate of 127.0.0.1 is refused (self-signed certificate" in error
    assert ("REQUESTS_CA_BUNDLE" in error, "hidden" in error, server.taken) == (True, False, [])
