"""Refused deliveries that are kept whole, and taken in once they prove genuine."""

import contextlib
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.intake.quarantine_buffer import MAX_DELIVERIES, QuarantineBuffer
from hookonce.receiver.intake.reverification import reverify
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.decryption import pack, unpack
from hookonce.receiver.ledger.quarantine import Arrival, keep
from hookonce.receiver.source import Quarantine, Source
from tests.support.in_process import Receiver

KEYRING = Keyring([os.urandom(32)])
RIGHT, WRONG = "whsec_the_right_one", "whsec_the_wrong_one"
STRIPE = load("stripe", ())
EVER = datetime(2000, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
EARLIER = "arrived_at = arrived_at - interval '1 hour'"


def delivery(event_id, secret=RIGHT, at=None):
    body = b'{"id": "%s", "type": "invoice.paid", "card": "4242"}' % event_id.encode()
    return STRIPE.delivery(body, secret, at or datetime.now(UTC), url="/hooks/stripe")


class Inbox:
    """Receivers of one database, one after the other, and what is in its quarantine."""

    def __init__(self, database_url, redis_url):
        self.settings = Settings(database_url, redis_url, {}, keyring=KEYRING)
        self.connection = connections.connect(database_url)

    def receive(self, *deliveries, secrets=(WRONG,), skew=timedelta(0), **bounds):
        """Send to a receiver with these secrets; gives the answers' codes. It has ended when this returns."""
        with contextlib.closing(
            Receiver(self.settings.database_url, self.settings.redis_url, keyring=KEYRING)
        ) as receiver:
            receiver.now += skew
            receiver.add("stripe", STRIPE, *secrets, quarantine=Quarantine(**bounds))
            answers = [receiver.send("stripe", each) for each in deliveries]
            return [answer.json.get("code") or answer.json["status"] for answer in answers]

    def reverify(self, *, secrets=(RIGHT,), since=EVER, dry_run=False, connection=None):
        source = Source("stripe", STRIPE, secrets, quarantine=Quarantine())
        steps = reverify(self.settings, connection or self.connection, source, since, "ann", dry_run=dry_run)
        return [*steps][-1]

    def rows(self, query):
        return self.connection.execute(query).fetchall()

    def kept(self):
        return self.rows("SELECT count(*) FROM hookonce.quarantine")[0][0]

    def events(self):
        return [row[0] for row in self.rows("SELECT event_id FROM hookonce.event_states ORDER BY event_id")]


@pytest.fixture
def inbox(database_url, redis_url):
    inbox = Inbox(database_url, redis_url)
    yield inbox
    inbox.connection.close()


def test_refused_delivery_is_kept_whole_and_sealed(inbox):
    sent = delivery("evt_1")

    assert inbox.receive(sent) == ["bad_signature"]

    ((number, text),) = inbox.rows("SELECT id, delivery FROM hookonce.quarantine")
    with inbox.connection.transaction():
        opened = unpack(quarantine.locked(inbox.connection, number).opened(KEYRING))
    assert b"4242" not in text
    assert (opened.body, opened.headers["stripe-signature"]) == (sent.body, sent.headers["stripe-signature"])


def test_genuine_delivery_is_taken_in_once_its_secret_is_mended(inbox):
    inbox.receive(delivery("evt_1"), delivery("evt_2"))

    done = inbox.reverify()

    assert (done.genuine, done.accepted, done.refused) == (2, 2, {})
    assert (inbox.events(), inbox.kept()) == (["evt_1", "evt_2"], 0)


def test_retry_of_the_sender_is_a_duplicate_after_it_was_taken_in(inbox):
    inbox.receive(delivery("evt_1"))
    inbox.reverify()

    assert inbox.receive(delivery("evt_1"), secrets=(RIGHT,)) == ["duplicate"]
    assert inbox.events() == ["evt_1"]


def test_delivery_is_a_duplicate_when_the_sender_retried_before(inbox):
    inbox.receive(delivery("evt_1"))
    inbox.receive(delivery("evt_1"), secrets=(RIGHT,))

    done = inbox.reverify()

    assert (done.genuine, done.accepted, done.duplicates, inbox.kept()) == (1, 0, 1, 0)
    assert inbox.rows("SELECT count(*) FROM hookonce.conflicts") == [(0,)]


def test_forged_delivery_stays_refused_and_in_quarantine(inbox):
    inbox.receive(delivery("evt_1", "whsec_of_an_attacker"), delivery("evt_2"))

    done = inbox.reverify()

    assert (done.genuine, done.refused) == (1, {"bad_signature": 1})
    assert (inbox.events(), inbox.kept()) == (["evt_2"], 1)


def test_delivery_without_any_secret_is_taken_in_once_there_is_one(inbox):
    assert inbox.receive(delivery("evt_1"), secrets=()) == ["no_secret"]

    assert inbox.reverify().accepted == 1


def test_stale_delivery_stays_refused_as_of_its_arrival(inbox):
    old = datetime.now(UTC) - HOUR
    assert inbox.receive(delivery("evt_1", at=old), secrets=(RIGHT,)) == ["stale"]

    assert inbox.reverify().refused == {"stale": 1}
    assert inbox.events() == []


def test_delivery_that_our_wrong_clock_refused_is_taken_in(inbox):
    assert inbox.receive(delivery("evt_1"), secrets=(RIGHT,), skew=HOUR) == ["stale"]

    assert inbox.reverify().accepted == 1


def test_delivery_is_checked_as_of_its_arrival_however_late(inbox):
    ago = timedelta(hours=5)
    packed = pack(delivery("evt_1", at=datetime.now(UTC) - ago))
    keep(inbox.connection, "stripe", Quarantine(), KEYRING, [Arrival("bad_signature", ago, packed)])

    assert inbox.reverify().accepted == 1


@pytest.mark.parametrize(
    "attack",
    [
        "delivery = set_byte(delivery, 40, 255 - get_byte(delivery, 40))",
        "delivery = substr(delivery, 1, 20)",
        "reason = 'no_secret'",
        EARLIER,
        "key_id = 'deadbeef'",
        "source = 'stripe'",
    ],
)
def test_delivery_that_was_tampered_with_is_never_taken_in(inbox, attack):
    """The last: one of another source, moved to this one, whose secret it is signed with."""
    origin = "other" if attack.startswith("source") else "stripe"
    stale = pack(delivery("evt_1", at=datetime.now(UTC) - HOUR if "arrived_at" in attack else None))
    keep(inbox.connection, origin, Quarantine(), KEYRING, [Arrival("stale", timedelta(0), stale)])
    inbox.connection.execute(b"UPDATE hookonce.quarantine SET " + attack.encode())

    done = inbox.reverify()

    assert (done.unopened, done.looked_at) == (1, 1)
    assert (inbox.events(), inbox.kept()) == ([], 1)


def test_delivery_is_taken_in_once_when_the_process_dies_before_letting_go(inbox, monkeypatch):
    inbox.receive(delivery("evt_1"))

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(quarantine, "let_go", die)
        with pytest.raises(KeyboardInterrupt):
            inbox.reverify()

    assert (inbox.events(), inbox.kept()) == (["evt_1"], 1)
    assert (inbox.reverify().duplicates, inbox.kept()) == (1, 0)


def test_delivery_stays_when_the_ledger_does_not_take_it(inbox, monkeypatch):
    inbox.receive(delivery("evt_1"))

    def unavailable(*_):
        raise connections.LedgerUnavailable("cut")

    with monkeypatch.context() as patched:
        patched.setattr(Intake, "_store", unavailable)
        with pytest.raises(connections.LedgerUnavailable):
            inbox.reverify()

    assert (inbox.events(), inbox.kept(), inbox.rows("TABLE hookonce.audit")) == ([], 1, [])


def test_two_at_once_take_every_delivery_in_once(inbox):
    inbox.receive(*(delivery(f"evt_{n}") for n in range(20)))
    done, start = [], threading.Barrier(2)

    def run():
        with connections.connect(inbox.settings.database_url) as connection:
            start.wait(10)
            done.append(inbox.reverify(connection=connection))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sum(each.accepted for each in done) == 20
    assert (len(inbox.events()), inbox.kept()) == (20, 0)


def test_delivery_that_another_is_looking_at_is_left_to_it(inbox, monkeypatch):
    inbox.receive(delivery("evt_1"))
    right, others = Intake.reverify, []

    def beside(*args, **options):
        monkeypatch.setattr(Intake, "reverify", right)
        with connections.connect(inbox.settings.database_url) as connection:
            others.append(inbox.reverify(connection=connection))
        return right(*args, **options)

    monkeypatch.setattr(Intake, "reverify", beside)
    done = inbox.reverify()

    assert ([each.looked_at for each in others], done.accepted) == ([0], 1)
    assert inbox.rows("SELECT action FROM hookonce.audit") == [("reverify",)]


def test_dry_run_tells_and_takes_nothing(inbox):
    inbox.receive(delivery("evt_1"), delivery("evt_2", "whsec_of_an_attacker"))

    done = inbox.reverify(dry_run=True)

    assert (done.genuine, done.refused) == (1, {"bad_signature": 1})
    assert (inbox.events(), inbox.kept(), inbox.rows("TABLE hookonce.audit")) == ([], 2, [])


def test_what_came_before_since_is_not_looked_at(inbox):
    inbox.receive(delivery("evt_1"))

    with pytest.raises(IndexError):
        inbox.reverify(since=datetime.now(UTC) + HOUR)


def test_what_is_taken_in_is_audited(inbox):
    inbox.receive(delivery("evt_1"))

    inbox.reverify()

    ((who, action, subject, detail),) = inbox.rows("SELECT who, action, subject, detail FROM hookonce.audit")
    assert (who, action, subject) == ("ann", "reverify", "source stripe")
    assert (detail["events"], detail["reason"]) == (["evt_1"], "bad_signature")


def test_refusals_of_a_second_check_are_not_noted_again(inbox):
    inbox.receive(delivery("evt_1", "whsec_of_an_attacker"))

    inbox.reverify()

    assert inbox.rows("SELECT count(*) FROM hookonce.rejected") == [(1,)]
    assert inbox.kept() == 1


def test_nothing_is_checked_without_a_secret(inbox):
    with pytest.raises(ConfigError, match="'stripe' has no signing secret"):
        inbox.reverify(secrets=())


@pytest.mark.parametrize("bounds", [{"reasons": ["stale"]}], ids=["another reason"])
def test_delivery_is_not_kept_for_a_reason_that_is_not_asked_for(inbox, bounds):
    inbox.receive(delivery("evt_1"), **bounds)

    assert inbox.kept() == 0


def arrivals(number, *, size=10, age=timedelta(0)):
    return [Arrival("bad_signature", age, b"x" * size)] * number


def test_quarantine_keeps_whom_came_first_and_half_of_its_room_an_hour(inbox):
    bounds = Quarantine(count=100)

    early = keep(inbox.connection, "a", bounds, KEYRING, arrivals(30, age=2 * HOUR))
    flood = keep(inbox.connection, "a", bounds, KEYRING, arrivals(500))
    again = keep(inbox.connection, "a", bounds, KEYRING, arrivals(500))

    assert (early, flood, again) == (0, 465, 500)
    assert inbox.rows(
        "SELECT count(*) FROM hookonce.quarantine WHERE arrived_at < now() - interval '1 hour'"
    ) == [(30,)]


def test_flood_of_hours_never_fills_more_than_the_bounds(inbox):
    bounds = Quarantine(count=100, size=100_000)

    for hour in range(24, -1, -1):
        keep(inbox.connection, "a", bounds, KEYRING, arrivals(200, size=3000, age=hour * HOUR))

    ((count, size),) = inbox.rows("SELECT count(*), sum(octet_length(delivery)) FROM hookonce.quarantine")
    assert (count <= 100, 60_000 < size <= 100_000) == (True, True), (count, size)


def test_flood_of_one_source_takes_no_room_of_another(inbox):
    keep(inbox.connection, "a", Quarantine(count=10), KEYRING, arrivals(500))

    assert keep(inbox.connection, "b", Quarantine(count=10), KEYRING, arrivals(5)) == 0


def test_quarantine_lets_go_of_what_has_outlived_its_time(inbox):
    keep(inbox.connection, "a", Quarantine(), KEYRING, arrivals(1, age=3 * HOUR))
    keep(inbox.connection, "b", Quarantine(), KEYRING, arrivals(1, age=31 * 24 * HOUR))

    gone = quarantine.expire(inbox.connection, {"a": Quarantine(time=timedelta(hours=2))})

    assert (gone, inbox.kept()) == (2, 0)


def test_delivery_that_has_outlived_its_time_is_not_taken_in(inbox):
    age = timedelta(days=8)
    packed = pack(delivery("evt_1", at=datetime.now(UTC) - age))
    keep(inbox.connection, "stripe", Quarantine(), KEYRING, [Arrival("bad_signature", age, packed)])

    with pytest.raises(IndexError):
        inbox.reverify()


def test_ward_is_bounded_in_a_flood_and_never_fails_the_answer():
    buffer = QuarantineBuffer(KEYRING)
    source = Source("a", STRIPE, (RIGHT,), quarantine=Quarantine())

    for _ in range(1000):
        buffer.offer(source, "bad_signature", Delivery("POST", "/", {}, b"x" * 1_000_000))

    assert 1 <= sum(map(len, buffer._waiting.values())) <= 4  # noqa: SLF001
    assert buffer._bytes["a"] < 4.2e6  # noqa: SLF001


def test_ward_is_bounded_in_a_flood_at_many_sources():
    buffer = QuarantineBuffer(KEYRING)

    for name in "abcdef":
        source = Source(name, STRIPE, (RIGHT,), quarantine=Quarantine())
        for _ in range(3):
            buffer.offer(source, "bad_signature", Delivery("POST", "/", {}, b"x" * 1_300_000))

    assert sum(buffer._bytes.values()) < 16.8e6  # noqa: SLF001


def test_ward_keeps_what_waits_until_the_ledger_is_back(inbox):
    buffer = QuarantineBuffer(KEYRING)
    source = Source("a", STRIPE, (RIGHT,), quarantine=Quarantine())
    for _ in range(2 * MAX_DELIVERIES):
        buffer.offer(source, "bad_signature", delivery("evt_1"))

    with connections.connect(inbox.settings.database_url) as gone:
        gone.close()
        with pytest.raises(connections.psycopg.OperationalError):
            buffer.write(gone)
    buffer.write(inbox.connection)

    assert inbox.kept() == MAX_DELIVERIES


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_packed_delivery_is_the_same_unpacked(method):
    sent = Delivery(method, "/hooks/a?b=\xe9", {"x": "\xff, a"}, b"\n{\0\xff\n}", "path secret")

    assert unpack(pack(sent)) == sent


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("quarantine = true", "needs encryption_keys in [receiver]"),
        ('quarantine = { time = "90d" }', "expected 30 d at most"),
        ("quarantine = { cuont = 5 }", "no setting 'cuont'; did you mean 'count'?"),
        ('quarantine = { size = "10 MB" }', "500kB, 10MB or 1GB"),
        ('quarantine = { reasons = ["bad_method"] }', "reasons"),
        ('quarantine = true\nredact = ["$.a"]', "what is in quarantine is whole; remove one of them"),
    ],
)
def test_quarantine_that_can_not_be_is_a_mistake(tmp_path, table, said):
    path = tmp_path / "hookonce.toml"
    path.write_text(f'[sources.stripe]\nsecrets = ["env:S"]\n{table}\n')

    with pytest.raises(ConfigError) as caught:
        load_settings({"HOOKONCE_CONFIG": str(path), "S": RIGHT})

    assert any(said in mistake for mistake in caught.value.mistakes), caught.value.mistakes


def test_quarantine_may_not_outlast_the_memory_of_events(tmp_path):
    path = tmp_path / "hookonce.toml"
    path.write_text(
        '[receiver]\nkeep_events = "5d"\nencryption_keys = ["env:K"]\n'
        '[sources.stripe]\nsecrets = ["env:S"]\nquarantine = { time = "7d" }\n'
    )

    with pytest.raises(ConfigError, match="expected 4 d at most"):
        load_settings({"HOOKONCE_CONFIG": str(path), "S": RIGHT, "K": os.urandom(32).hex()})
