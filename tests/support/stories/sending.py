"""What senders do: sign, post, and come again with a new signature until they get a 2xx."""

import hashlib
import http.client
import json
import socket
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from hookonce.providers import Delivery as Request
from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.providers.kit.registry import load
from tests.support.stories.history import Delivery, Sent
from tests.support.stories.plans import SECRET, SENDERS

PATIENCE = 10.0
PROVIDERS = {name: load(name, [str(SENDERS)]) for name in ("stripe", "github", "depot")}


@dataclass(frozen=True)
class Message:
    """What a sender wants to tell us; each attempt at it is signed anew."""

    source: str
    body: bytes
    headers: dict = field(default_factory=dict)
    secret: str = SECRET
    attempt: int = 1
    age: float = 0
    """Seconds between signing and sending."""

    def again(self):
        """The sender's retry: the same event; Stripe has fewer webhooks pending by then."""
        document = json.loads(self.body)
        if self.source == "stripe":
            document["pending_webhooks"] = max(0, document["pending_webhooks"] - 1)
        return replace(self, body=_json(document), attempt=self.attempt + 1)

    def tampered(self, amount=1_000_000):
        """The same id over another body, validly signed."""
        document = json.loads(self.body)
        document["data"] = {"object": {"amount_due": amount}}
        return replace(self, body=_json(document))

    def forged(self):
        """Signed by somebody who does not know the secret."""
        return replace(self.tampered(666), secret="whsec_guessed")

    def signed(self):
        now = datetime.fromtimestamp(datetime.now(UTC).timestamp() - self.age, UTC)
        sign = PROVIDERS[self.source].sign
        return {"content-type": "application/json"} | sign(self.body, self.secret, now) | self.headers

    def events(self):
        """The events of this message, as the sender means them."""
        provider = PROVIDERS[self.source]
        sent = []
        for event in provider.events(Request("POST", f"/hooks/{self.source}", self.signed(), self.body)):
            raw = event.raw if event.raw is not None else self.body
            sent.append(Sent(event.id, event.type, raw, fingerprint(raw, provider.volatile)))
        return sent


def stripe(event_id, kind="invoice.paid", **story):
    """An event of Stripe's."""
    document = {"id": event_id, "object": "event", "type": kind, "created": 1_700_000_000}
    document |= {"pending_webhooks": 3, "data": {"object": {"amount_due": 1999}}, "story": story}
    return Message("stripe", _json(document))


def depot(*event_ids, kind="parcel.sent", **story):
    """A batch of parcels."""
    return Message("depot", _json([{"id": each, "type": kind, "story": story} for each in event_ids]))


def github(event_id, **content):
    """A push of GitHub's, whose id is in no signature."""
    return Message("github", _json(content), {"x-github-delivery": event_id, "x-github-event": "push"})


def post(message, path):
    """Send once and tell what came of it: an answer, or none because whoever listened died."""
    answer = _exchange(message, path)
    events = message.events()
    is_authentic = message.secret == SECRET and message.age == 0
    if answer is None:
        return Delivery(message.source, events, None, {}, is_authentic)
    status, document = answer
    verdicts = {}
    for each in document.get("events", ()):
        verdicts.setdefault(each["event_id"], each["status"])
    return Delivery(message.source, events, status, verdicts, is_authentic)


def _exchange(message, path):
    return exchange(path, f"/hooks/{message.source}", message.body, message.signed())


def exchange(path, target, body, headers):
    """Post to the receiver at a socket; give the status and the document of its answer, None if none came."""
    connection = _UnixConnection(path)
    try:
        connection.request("POST", target, body, headers | {"connection": "close"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def digest(body):
    return hashlib.sha256(body).hexdigest()


def _json(document):
    return json.dumps(document, separators=(",", ":")).encode()
