"""Events of an inbox go to a program, as `hookonce listen` sends them."""

import json
import re
import threading
import uuid
from datetime import UTC, datetime, timedelta

import click
import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.cli.commands.listen import cursor_file, require_target
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.listen import forwarder
from hookonce.receiver.cli.listen.forwarder import Forwarder
from hookonce.receiver.cli.listen.signers import Signers
from hookonce.receiver.remote import profiles, pull
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.profiles import Profile
from hookonce.receiver.remote.pull import CursorFile, Puller, Wanted
from tests.cli.conftest import hookonce, place  # noqa: F401  fixtures
from tests.support.program import program
from tests.support.waiting import at_once, until

pytestmark = pytest.mark.usefixtures("home", "place")


@pytest.fixture(autouse=True)
def _soon(monkeypatch, place):  # noqa: F811
    monkeypatch.setattr(pull, "LONGEST_WAIT", timedelta(seconds=0.02))
    monkeypatch.setattr("hookonce.receiver.cli.commands.listen.PAUSE", timedelta(0))
    monkeypatch.setattr(forwarder, "TRY_AGAIN", timedelta(seconds=0.02))
    (place / "hookonce.toml").unlink()


class Listening:
    """What `hookonce listen` is made of, ended as soon as all is sent."""

    def __init__(self, served, url, file, **wanted):
        self.file = CursorFile(file)
        profile = Profile("prod", served.url, served.token(uuid.uuid4().hex, "read", "bodies"))
        self.forwarder = Forwarder(
            profile.url, url, timedelta(minutes=1), Signers(configured(), self.file), self.file
        )
        since = datetime.now(UTC) - timedelta(hours=1)
        self._puller = Puller(Client(profile), Wanted(since, **wanted), self.file, self.forwarder.tell)
        self.ended = threading.Event()

    def run(self):
        with self.file.held():
            for page in self._puller.pages(self.ended, follows=False):
                if not self.forwarder.page(page, self.ended):
                    return


@pytest.fixture
def target_program():
    with program() as running:
        yield running


@pytest.fixture
def listening(served, target_program, tmp_path):
    return lambda name="a", **wanted: Listening(
        served, target_program.url, tmp_path / f"{name}.json", **wanted
    )


def logged_in(served):
    token = served.token("ada", "read", "bodies")
    profiles.save(Profile("prod", served.url, token))


def test_program_gets_what_was_sent_signed_with_the_secret_that_is_printed(
    served, listening, target_program, capsys
):
    body = b'{"id":  "evt_1",\n "type": "invoice.paid", "n": 1.10, "text": "Zo\xc3\xab"}'
    kept = {
        "stripe-signature": "t=1,v1=00",
        "x-own": "1",
        "authorization": "[secret]",
        "user-agent": "Stripe/1.0",
    }
    (number,) = served.inbox.deliver("evt_1", body=body, headers=json.dumps(kept))

    listening().run()

    (came,) = target_program.came
    printed = capsys.readouterr().out
    load("stripe").verify(came.delivery, [re.search(r"stripe +secret (\S+)", printed)[1]], datetime.now(UTC))
    headers = came.delivery.headers
    assert came.delivery.body == body
    assert (headers["x-own"], headers["user-agent"]) == ("1", "Stripe/1.0")
    assert "authorization" not in headers
    assert came.origin == number
    assert re.search(rf"stripe +200 \d+ ms +invoice.paid  evt_1  {number}\n", printed)


def test_element_of_a_batch_comes_in_a_batch_of_one(served, listening, target_program):
    element = b'{"sg_event_id": "a",  "event": "open"}'
    served.inbox.deliver("a", provider="twilio_sendgrid_events", body=element, is_element=True)

    listening().run()

    assert target_program.came[0].delivery.body == b"[" + element + b"]"


@pytest.mark.parametrize(
    ("status", "said"), [(500, r"500 \d+ ms +.*: no \\x1b\[31mroom"), (None, r"no answer +.*did not answer")]
)
def test_failure_is_shown_and_the_next_event_follows(served, listening, target_program, capsys, status, said):
    numbers = served.inbox.deliver("evt_1", "evt_2")
    target_program.answer = lambda came: status if came.origin == numbers[0] else 200

    here = listening()
    here.run()

    assert re.search(said, capsys.readouterr().out)
    assert target_program.origins == numbers
    assert here.file.kept.failed == [numbers[0]]


def test_target_that_hangs_is_given_up(served, listening, target_program, capsys):
    served.inbox.deliver("evt_1")
    hanging = threading.Event()
    target_program.answer = lambda _: hanging.wait(60) and 200
    here = listening()
    here.forwarder._timeout = timedelta(seconds=0.3)  # noqa: SLF001  too short for an answer under load

    here.run()
    hanging.set()

    assert "ReadTimeout" in capsys.readouterr().out


def test_event_waits_where_nothing_listens(served, tmp_path, capsys):
    numbers = served.inbox.deliver("evt_1", "evt_2")
    with program() as gone:
        url, port = gone.url, gone.port
    here = Listening(served, url, tmp_path / "a.json")
    running = threading.Thread(target=here.run)
    running.start()
    until(lambda: here.forwarder._is_waiting)  # noqa: SLF001  nothing else shows it in time

    with program(port=port) as back:
        running.join(20)

        assert back.origins == numbers
    assert "nothing listens at" in capsys.readouterr().out


def test_what_was_sent_is_not_sent_again_when_a_page_was_cut_off(served, listening, target_program):
    numbers = served.inbox.deliver(*(f"evt_{n}" for n in range(6)))
    cut_off = listening()

    note = cut_off.file.note

    def killed(event, **said):
        if event == numbers[2]:
            raise KeyboardInterrupt  # after it was sent
        note(event, **said)

    cut_off.file.note = killed
    with pytest.raises(KeyboardInterrupt):
        cut_off.run()
    listening().run()

    assert target_program.origins == [*numbers[:3], *numbers[2:]]


def test_two_who_listen_at_once_get_all_and_have_secrets_of_their_own(served, tmp_path, target_program):
    numbers = served.inbox.deliver(*(f"evt_{n}" for n in range(20)))
    with program() as other:
        pair = [
            Listening(served, url, tmp_path / f"{name}.json")
            for name, url in (("a", target_program.url), ("b", other.url))
        ]
        at_once(*(each.run for each in pair))

        assert target_program.origins == other.origins == sorted(numbers)
    assert pair[0].file.kept.secrets != pair[1].file.kept.secrets


def test_source_that_nobody_can_sign_for_is_named_and_counted(served, listening, target_program, capsys):
    served.inbox.deliver("evt_1", source="bank", provider="plaid")
    served.inbox.deliver("evt_2", source="own", provider="hmac")
    served.inbox.deliver("evt_3")

    here = listening()
    here.run()
    here.forwarder.status.say(0, is_last=True)

    said = capsys.readouterr().out
    assert "bank          not sent on: no secret can be made up for plaid" in said
    assert "configure [sources.own] in hookonce.toml here" in said
    assert "1 sent, 0 failed, 2 of sources that can't be signed for" in said
    assert len(target_program.came) == 1


def test_source_that_is_configured_here_signs_with_its_own_secret(
    served,
    listening,
    target_program,
    place,  # noqa: F811
    capsys,
):
    (place / "hookonce.toml").write_text(
        '[sources.stripe]\nprovider = "stripe"\nsecrets = ["env:STRIPE_SECRET"]\n'
    )
    served.inbox.deliver("evt_1")

    listening().run()

    load("stripe").verify(target_program.came[0].delivery, ["whsec_of_the_tests"], datetime.now(UTC))
    assert "whsec_of_the_tests" not in capsys.readouterr().out


def test_redacted_event_is_marked_and_counts_as_signed(served, listening, target_program):
    served.inbox.deliver("evt_1", body=b'{"id":"evt_1","card":"[redacted]"}', fingerprint=b"\1" * 32)

    here = listening()
    here.run()

    sent = target_program.came[0].delivery
    assert sent.headers["hookonce-redacted"] == "yes"
    load("stripe").verify(sent, [here.file.kept.secrets["stripe"]], datetime.now(UTC))


def test_odd_events_are_counted_and_the_others_come(served, listening, target_program, capsys):
    (gone, kept) = served.inbox.deliver("evt_1", "evt_2")
    served.inbox.connection.execute("DELETE FROM hookonce.bodies WHERE event = %s", [gone])
    here = listening()

    here.run()
    for odd in ({}, {"id": "x"}, {"id": True, "body_b64": 7}):
        assert here.forwarder.send(odd, None).is_taken is None
    here.forwarder.status.say(3, is_last=False)

    assert target_program.origins == [kept]
    assert "an event is not as expected" in capsys.readouterr().out


@pytest.mark.parametrize("again", [["--again", "{number}"], ["--again", "evt_2"], ["--only-failed"]])
def test_event_is_sent_again_by_its_id_or_because_it_failed(
    served,
    hookonce,  # noqa: F811
    target_program,
    again,
):
    logged_in(served)
    numbers = served.inbox.deliver("evt_1", "evt_2", "evt_3")
    command = ["listen", "prod", "--forward", target_program.url]
    cursor_file(profiles.find("prod"), Wanted(None), target_program.url).note(numbers[1], has_failed=True)
    target_program.answer = lambda _: 503

    refused = hookonce(*command, *(each.format(number=numbers[1]) for each in again))
    target_program.answer = lambda _: 200
    taken = hookonce(*command, *(each.format(number=numbers[1]) for each in again))
    nothing = hookonce(*command, "--only-failed")

    assert (refused.code, taken.code, nothing.code) == (1, 0, 0)
    assert target_program.origins == [numbers[1]] * 2
    assert "nothing has failed here" in nothing.out.decode()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://inbox.example/hook", "is not this machine"),
        ("http://localhost@evil.example/", "expected an address"),
        ("http://evil.example\\@localhost/", "expected an address"),
        ("http://10.0.0.1:3000/", "is not this machine"),
        ("localhost:3000/hook", "expected an address"),
        ("file:///etc/passwd", "expected an address"),
        ("http://localhost:99999/", "expected an address"),
    ],
)
def test_target_is_on_this_machine(hookonce, address, said):  # noqa: F811
    refused = hookonce("listen", "prod", "--forward", address)

    assert (refused.code, said in refused.err) == (2, True), refused.err


def test_target_may_be_elsewhere_if_one_insists():
    address = "http://10.0.0.1:3000/{source}"

    require_target(address, elsewhere=True)
    with pytest.raises(click.BadParameter):
        require_target(address, elsewhere=False)
