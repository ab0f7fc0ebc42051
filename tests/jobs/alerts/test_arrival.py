"""One broken handler and 300 events, by `hookonce dev`: one message at each target, and one at its end."""

import json
import shutil
import socket
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from hookonce.jobs.alerts.messages import message_of
from tests.support.attacks import certificate
from tests.support.dev_stack import hookonce, save, started
from tests.support.mail_server import MailServer, served
from tests.support.program import program
from tests.support.waiting import until

EVENTS = 300
WITHIN = 60  # seconds
SECRET = "whsec_YWxlcnRzLW9mLXRoZS10ZXN0cw"
BROKEN = """
from hookonce import on

@on("stripe", "invoice.paid", name="credit", attempts=99, backoff=(1, 5))
def credit(event, tx):
    raise LookupError("no such customer")
"""
MENDED = BROKEN.replace('raise LookupError("no such customer")', "pass")
CONFIGURATION = """
[receiver]
handlers = ["handlers"]
[sources.stripe]
secrets = ["env:STRIPE_SECRET"]
[alerts]
urls = ["{webhook}", "http://127.0.0.1:{silent}/in"]
secret = "env:ALERTS_SECRET"
slack = {{ url = "env:SLACK" }}
teams = {{ url = "env:AWAY" }}
mail = {{ to = ["ann@example.com"], smtp = "env:STARTTLS" }}
"""


class Targets:
    """Servers of the shape of Slack, SMTP and a webhook; beside them one that is away, and one that never answers."""

    def __init__(self, stack, place):
        context = certificate.serving(place)
        self.slack, self.webhook = (stack.enter_context(program()) for _ in range(2))
        self.mail = stack.enter_context(served(MailServer(context, offers_starttls=True)))
        self.silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.environ = {
            "STRIPE_SECRET": SECRET,
            "ALERTS_SECRET": SECRET,
            "SLACK": self.slack.url,
            "AWAY": "http://127.0.0.1:1/in",
            "STARTTLS": f"smtp://ann:pass@127.0.0.1:{self.mail.port}",
            "SSL_CERT_FILE": str(place / "cert.pem"),
        }

    def messages(self):
        """The headlines that each target got."""
        posted = [json.loads(each.delivery.body) for each in self.webhook.came]
        return {
            "slack": [json.loads(each.delivery.body)["text"].splitlines()[0] for each in self.slack.came],
            "mail": [each["subject"].removeprefix("[hookonce] ") for each in self.mail.mails],
            "webhook": [message_of(each).headline for each in posted],
        }


def reading(dev):
    while dev.read():
        pass


@pytest.fixture
def place(disk):
    """A directory that PostgreSQL may enter, which runs as another user if we are root."""
    made = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


def test_broken_handler_is_one_message_at_each_target_and_one_when_it_is_over(place):
    with ExitStack() as stack:
        targets = Targets(stack, place)
        (place / "handlers.py").write_text(BROKEN)
        (place / "hookonce.toml").write_text(
            CONFIGURATION.format(webhook=targets.webhook.url, silent=targets.silent.getsockname()[1])
        )
        dev = stack.enter_context(started(place, **targets.environ))
        threading.Thread(target=reading, args=[dev], daemon=True).start()

        assert {dev.post(f"evt_{n}", SECRET).status_code for n in range(EVENTS)} == {200}
        raised = {key: ["new issue: LookupError in credit"] for key in ("slack", "mail", "webhook")}
        until(targets.messages, raised, seconds=WITHIN)
        save(dev, "handlers.py", MENDED)
        over = {target: [*messages, "over: LookupError in credit"] for target, messages in raised.items()}
        until(targets.messages, over, seconds=WITHIN)

        tested = hookonce("alerts", "test", "--wait", "60s", place=place, **targets.environ)
        answers = dict(line.split(": ", 1) for line in tested.stdout.splitlines())
        assert (tested.returncode, {answers.pop(each) for each in ("slack", "mail")}) == (
            1,
            {"accepted (200)", "accepted (250)"},
        )
        assert "did not answer: ConnectionError" in answers.pop("teams")
        assert ["did not answer: ReadTimeout" in answers[each] for each in sorted(answers)] == [True, False]
        examined = hookonce("doctor", place=place, **targets.environ).stdout
        assert [name for name in ("teams", "127.0.0.1") if f"alert to {name}" not in examined] == []
