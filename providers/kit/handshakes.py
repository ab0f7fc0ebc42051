"""Probes of a URL: what senders ask before they deliver, and what may be answered to anybody.

Texts that come back as they were sent prove nothing, so anyone may have them. A probe that wants proof of the
secret gets HMAC(secret, its text): with the key that signs deliveries, that is a signature of text which the
caller chose. So `proof` refuses all but one plain word; whoever uses it must see to it that no body made of
such a word is an event, and that what is signed for a delivery is not such a word.
"""

import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from hookonce.providers import Delivery, Rejected, Reply
from hookonce.providers.kit.crypto.secret_keys import keys_of
from hookonce.providers.kit.crypto.signature_text import Encoding, speller
from hookonce.providers.kit.reading.bodies import json_body

_PLAIN: Final = re.compile(r"[\x20-\x7e]{1,2000}")
_WORD: Final = re.compile(r"[A-Za-z0-9+/=_-]{1,200}")
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")
_MAX_PARAMETERS: Final = 100
_MAX_CHALLENGE_LENGTH: Final = 1000
_MAX_PROBE_BYTES: Final = 64 * 1024
"""As long as a body may be that is asked whether it is a probe; genuine ones have a few hundred bytes."""


def query_parameter(delivery: Delivery, name: str, form: re.Pattern[str] | None = None) -> str | None:
    """Return the parameter `name` of a GET request's query; None if there is none, not of this `form`, or no GET."""
    if delivery.method != "GET":
        return None
    try:
        text = dict(parse_qsl(urlsplit(delivery.url).query, max_num_fields=_MAX_PARAMETERS)).get(name)
    except ValueError:
        return None
    return text if text is None or form is None or form.fullmatch(text) else None


def authentic_body(
    authentic: Callable[[Delivery, Sequence[str]], object],
    delivery: Delivery,
    secrets: Sequence[str],
    read: Callable[[Delivery], Any] = json_body,
) -> Any:  # noqa: ANN401  whatever the body holds
    """Return what the body of a probe says, None unless it is `authentic` and can be read.

    There is no clock here, so a captured probe is answered again; that tells nothing new.
    """
    try:
        authentic(delivery, secrets)
        return read(delivery)
    except Rejected:
        return None


def unsigned_probe(delivery: Delivery, read: Callable[[Delivery], Any] = json_body) -> Mapping[str, Any]:
    """Return the object in a body that may be a probe, empty for none, and for one that is longer than any probe.

    For senders whose probes are not signed, or are told from events by what is in them: so an event, and what
    anybody sends in the place of one, is not read before it is verified.
    """
    try:
        said = read(delivery) if len(delivery.body) <= _MAX_PROBE_BYTES else None
    except Rejected:
        return {}
    return said if isinstance(said, dict) else {}


def subscribed(delivery: Delivery, tokens: Sequence[str]) -> Reply | None:
    """Return the answer of WebSub (`hub.mode=subscribe`): the challenge if one of `tokens` is named, 403 otherwise.

    None for anything else.
    """
    challenge, token = (
        query_parameter(delivery, "hub.challenge"),
        query_parameter(delivery, "hub.verify_token"),
    )
    if challenge is None or query_parameter(delivery, "hub.mode") != "subscribe":
        return None
    given = (token or "").encode("utf-8", "surrogatepass")
    right = [text.encode("utf-8", "surrogateescape") for text in tokens if text.strip()]
    known = [hmac.compare_digest(given, each) for each in right]
    return (echo(challenge) if any(known) else None) or Reply(status=403)


def answer_head(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Return a handshake for senders that ask by HEAD whether there is anybody at the URL."""
    return Reply() if delivery.method == "HEAD" else None


def hands_out_a_secret(header: str, *, beside: str) -> Callable[[Delivery, Sequence[str]], Reply | None]:
    """Return a handshake for senders that hand out their secret in `header`, in a POST without a signature `beside`."""

    def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Give a handed-out secret back, and say it unless it is known; None for anything else."""
        given = delivery.headers.get(header, "")
        if delivery.method != "POST" or beside in delivery.headers or not _SECRET.fullmatch(given):
            return None
        return Reply(headers={header.title(): given}, secret=None if given in secrets else given)

    return handshake


def echo(text: str | None) -> Reply | None:
    """`text` as it came, as plain text that no browser takes for a page; None if it can't be a challenge."""
    if text is None or _PLAIN.fullmatch(text) is None:
        return None
    return Reply(body=text.encode("ascii"), headers=_NO_SNIFFING)


def echo_header(delivery: Delivery, name: str) -> Reply | None:
    """Return the header `name` as it came, as a header of the answer; None if it can't be a challenge."""
    text = delivery.headers.get(name.lower(), "")
    return Reply(headers={name: text}) if _WORD.fullmatch(text) else None


def json_reply(document: Mapping[str, object]) -> Reply:
    """Return a JSON object as the answer."""
    return Reply(body=json.dumps(document).encode(), content_type="application/json", headers=_NO_SNIFFING)


def same_challenge(challenge: object) -> Reply | None:
    """Return the text `challenge` as it came, in JSON under that name; None for what can't be one."""
    fits = isinstance(challenge, str) and len(challenge) <= _MAX_CHALLENGE_LENGTH
    return json_reply({"challenge": str(challenge)}) if fits else None


def proof(text: object, secrets: Sequence[str], encoding: Encoding) -> str | None:
    """HMAC-SHA256 of `text` under the first of `secrets`, None unless `text` is one word of 200 characters.

    Raises: Rejected(no_secret).
    """
    if not isinstance(text, str) or _WORD.fullmatch(text) is None:
        return None
    mac = hmac.digest(keys_of(secrets, "raw")[0], text.encode("ascii"), "sha256")
    return speller(encoding, len(mac)).spell(mac)
