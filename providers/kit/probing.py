"""Probes of a URL: what senders ask before they deliver, and what may be answered to anybody.

Texts that come back as they were sent prove nothing, so anyone may have them. A probe that wants proof of the
secret gets HMAC(secret, its text): with the key that signs deliveries, that is a signature of text which the
caller chose. So `proof` refuses all but one plain word; whoever uses it must see to it that no body made of
such a word is an event, and that what is signed for a delivery is no such word.
"""

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from providers import Delivery, Reply
from providers.kit.encoding import Encoding, speller
from providers.kit.keys import keys_of

_PLAIN: Final = re.compile(r"[\x20-\x7e]{1,2000}")
_WORD: Final = re.compile(r"[A-Za-z0-9+/=_-]{1,200}")
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}
_PARAMETERS: Final = 100


def asked(delivery: Delivery, name: str) -> str | None:
    """The parameter `name` of a GET request's query, None if there is none or this is no GET."""
    if delivery.method != "GET":
        return None
    try:
        return dict(parse_qsl(urlsplit(delivery.url).query, max_num_fields=_PARAMETERS)).get(name)
    except ValueError:
        return None


def answer_head(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """A handshake for senders that ask by HEAD whether there is anybody at the URL."""
    return Reply() if delivery.method == "HEAD" else None


def echo(text: str | None) -> Reply | None:
    """`text` as it came, as plain text that no browser takes for a page; None if it can't be a challenge."""
    if text is None or _PLAIN.fullmatch(text) is None:
        return None
    return Reply(body=text.encode("ascii"), headers=_NO_SNIFFING)


def json_reply(document: Mapping[str, str]) -> Reply:
    """A JSON object as the answer."""
    return Reply(body=json.dumps(document).encode(), content_type="application/json", headers=_NO_SNIFFING)


def proof(text: object, secrets: Sequence[str], encoding: Encoding) -> str | None:
    """HMAC-SHA256 of `text` under the first of `secrets`, None unless `text` is one word of 200 characters.

    Raises: Rejected(no_secret).
    """
    if not isinstance(text, str) or _WORD.fullmatch(text) is None:
        return None
    mac = hmac.digest(keys_of(secrets, "raw")[0], text.encode("ascii"), "sha256")
    return speller(encoding, len(mac)).spell(mac)
