"""The files of a new provider: made of a captured delivery, or of one that stands in for it."""

import hashlib
import hmac
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from hookonce.providers import Delivery, Event, Rejected, kit
from hookonce.providers.kit import Timestamp, http_file, one_event
from hookonce.providers.kit.crypto.public_keys import is_public_key
from hookonce.providers.kit.schemes.jwt import Jwt
from hookonce.receiver.cli.new.guess import Guess, guess
from hookonce.receiver.cli.new.source_table import source_table

_BY_KEY_PAIR = ("Signed", "Jwt")
"""Schemes of senders with a key pair."""
_MAX_ON_ONE_LINE = 2  # arguments that go on one line
_MODULE = string.Template('''\
"""$summary

Say here what surprises: whether the id is the same on every retry, what is not covered by the signature, for how
long it retries. Then link to the sender's own page.

https://example.com/docs/webhooks
"""

from hookonce.providers import kit

scheme = $scheme
${sign}events = kit.one_event($places)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=$is_signed,
    retry_horizon=None,  # how long after an event it may still come again: kit.days(3)
$declared)
''')

_TEST = string.Template("""\
from pathlib import Path

import pytest

from hookonce.providers.kit.conformance import CHECKS, cases

HERE = Path(__file__).parent
PLACES = [str(HERE.parents[2] / "$folder")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", cases(HERE, "$name", PLACES), ids=str)
def test_${name}_keeps_the_contract(case, check):
    check(case)
""")
_EVIDENCE = 'evidence = "captured"\n'
_SECRET = "a secret of the tests"  # noqa: S105  it signs a sample and nothing else
_BODY = b'{"id": "evt_1", "type": "order.created", "order": {"total": 1999, "currency": "eur"}}'


@dataclass(frozen=True)
class Made:
    """Files to write, by their path from the current directory, and remarks for the user.

    `is_verified`: whether nothing contradicts what was written; a secret that fits in no way does.
    """

    contents: Mapping[Path, bytes]
    remarks: Sequence[str]
    is_verified: bool


def files(name: str, folder: Path, source: Path | None, secret: str) -> Made:
    """Return what is to be written; without a delivery for a plain HMAC sender. Raises: click.ClickException."""
    if source:
        raw, request = _read(source)
    else:
        raw, secret = _made_up(name), _SECRET
        request = http_file.read(raw)
    path = source or Path("order-created.http")
    known = _known(path, request, secret)
    tests = Path("tests", "providers", name)
    event = _event(known, request)
    contents = {
        folder / f"{name}.py": _module(name, known, request),
        tests / f"test_{name}.py": _TEST.substitute(name=name, folder=folder.as_posix()),
        tests / f"{path.stem}.toml": _facts(known, request, secret, event) + _EVIDENCE * bool(source),
    }
    encoded = {path: text.encode("utf-8", "replace") for path, text in contents.items()}
    remarks = [f"{path} is made up; put deliveries of the sender in its place"]
    if source:
        remarks = _remarks(name, known, secret, event)
    return Made({**encoded, tests / path.name: raw}, remarks, is_verified=known.found or not secret)


def _made_up(name: str) -> bytes:
    """Return a delivery as a sender called `name` could have signed it."""
    signature = hmac.new(_SECRET.encode(), _BODY, hashlib.sha256).hexdigest()
    header = f"x-{name.replace('_', '-')}-signature"
    headers = [("content-type", "application/json"), (header, f"sha256={signature}")]
    return http_file.written(http_file.Captured("POST", f"/hooks/{name}", headers, _BODY, datetime.now(UTC)))


def table(name: str, source: Path, secret: str) -> str:
    """Return what takes such deliveries without a module, for hookonce.toml. Raises: click.ClickException."""
    _, request = _read(source)
    known = _known(source, request, secret)
    if not known.found:
        raise click.ClickException(
            f"{_unsure(secret)}, so no table can be proposed; without --table a module is written, to be corrected"
        )
    return source_table(name, known)


def _known(source: Path, request: http_file.Captured, secret: str) -> Guess:
    known = guess(request, secret)
    tokens = [name.lower() for name, value in request.headers if value.endswith(http_file.TOKEN_MASK)]
    if tokens and not (known and known.found):
        raise click.ClickException(
            f"{source} had a signed token in {tokens[0]}, which is masked; capture the next delivery with "
            f"--keep {tokens[0]}, and {'the key is tried' if secret else 'it is read'}"
        )
    if known and known.scheme == "Token" and is_public_key(secret):
        place = known.arguments.get("header") or known.arguments.get("query") or "authorization"
        raise click.ClickException(
            f"{source} holds no signed token that this public key could verify: {place} is masked; capture the next "
            f"delivery with --keep {place}"
        )
    if known is None:
        raise click.ClickException(
            f"nothing in {source} looks like a signature or a masked token; leave out --from and fill the module in, "
            'or let its URL end in a secret: provider = "token" with in = "path"'
        )
    return known


def _read(source: Path) -> tuple[bytes, http_file.Captured]:
    try:
        raw = source.read_bytes()
        return raw, http_file.read(raw)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{source} can't be read: {error}") from None


def _module(name: str, known: Guess, request: http_file.Captured) -> str:
    how = "sends a shared token and signs nothing" if known.scheme == "Token" else "signs"
    signed = known.arguments.get("signed", "{body}")
    what = {
        "Signed": f"{how} `{signed}` with a private key, {known.arguments.get('algorithm')}".replace(
            "\n", "\\n"
        ),
        "Jwt": f"sends a signed token, {' or '.join(known.arguments.get('algorithms', ()))}",
        "Hmac": f"{how} `{signed}` with HMAC-{known.arguments.get('hash', 'sha256').upper()}".replace(
            "\n", "\\n"
        ),
        "StandardWebhooks": f"{how} as Standard Webhooks do",
        "Token": how,
    }[known.scheme]
    headers = {"event_id": known.in_headers.get("id"), "type": known.in_headers.get("type")}
    extra = "".join(f', {key}="{header}"' for key, header in headers.items() if header)
    places = [f"{key}={_place(*place)}" for key, place in known.places.items()]
    if _is_in_body(known):
        places.append("read=scheme.said")
    elif _is_text(request):
        places.append("read=kit.any_body")
    is_open = known.arguments.get("body_is_unsigned", False)
    is_unsigned = (
        known.scheme == "Token" or is_open or ("id" in known.in_headers and "{header:" not in signed)
    )
    declared = [
        *([f"identity={_identity(known)}"] if known.scheme != "StandardWebhooks" else []),
        *(["body_is_unsigned=True"] if is_open else []),
        *(["signed_in_parts=True"] if _is_in_body(known) and "field" in known.arguments else []),
    ]
    return _MODULE.substitute(
        summary=f"{name.replace('_', ' ').title()} {what}.",
        scheme=_call(f"kit.{known.scheme}", known.own, apart=len(known.own) > _MAX_ON_ONE_LINE),
        sign=f"sign = kit.signer(scheme.sign{extra})\n" if extra else "",
        places="\n" + _lines(places),
        is_signed=not is_unsigned,
        declared=_lines(declared),
    )


def _lines(arguments: Iterable[str]) -> str:
    return "".join(f"    {each},\n" for each in arguments)


def _is_in_body(known: Guess) -> bool:
    """Whether a signed token is, or is in, the body."""
    return known.scheme == "Jwt" and not known.arguments["header"]


def _is_text(request: http_file.Captured) -> bool:
    """Whether the body is no JSON."""
    return request.body.lstrip()[:1] not in (b"{", b"[")


def _call(function: str, arguments: Mapping[str, Any], *, apart: bool = False) -> str:
    parts = [f"{key}={_value(value)}" for key, value in arguments.items()]
    return (
        f"{function}(\n    {f',{chr(10)}    '.join(parts)},\n)"
        if apart
        else f"{function}({', '.join(parts)})"
    )


def _value(value: object) -> str:
    if isinstance(value, Timestamp):
        parts = {"header": value.header, "key": value.key, "unit": "" if value.unit == "s" else value.unit}
        return _call("kit.Timestamp", {key: text for key, text in parts.items() if text})
    if isinstance(value, timedelta):
        return f"kit.minutes({int(value.total_seconds() // 60)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))}{',' if len(value) == 1 else ''})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _place(function: str, *arguments: str) -> str:
    if function == "scheme.id":
        return function
    if function == "field":
        return json.dumps(*arguments)
    return f"kit.{function}({', '.join(map(json.dumps, arguments))})"


def _identity(known: Guess) -> str:
    """The place of the id that tells two events apart."""
    function, *arguments = known.places["id"]
    if function in {"field", "header"}:
        [name] = arguments
        if _is_in_body(known):
            return f"kit.told_apart_by({json.dumps(f'claim {name[2:]}')})"
        return f"kit.told_apart_by({json.dumps(name if function == 'field' else f'header {name.lower()}')})"
    return 'kit.told_apart_by("body", because="say why equal bodies are one event")'


def _event(known: Guess, request: http_file.Captured) -> Event | None:
    """The events that the module will make of the delivery."""
    headers = request.lowered()
    read = kit.any_body if _is_text(request) else kit.json_body
    if _is_in_body(known):
        read = Jwt(**known.own).said
    place = {
        key: getattr(kit, parts[0])(*parts[1:])
        for key, parts in known.places.items()
        if parts[0] != "scheme.id"
    }
    if known.scheme == "StandardWebhooks":
        place["id"] = kit.StandardWebhooks(**known.arguments).id
    try:
        return one_event(**place, read=read)(Delivery(request.method, request.url, headers, request.body))[0]
    except Rejected:
        return None


def _facts(known: Guess, request: http_file.Captured, secret: str, event: Event | None) -> str:
    is_public = is_public_key(secret) or known.scheme in _BY_KEY_PAIR
    what = (
        "the sender's public key" if is_public else "what it was signed with; roll it before you commit this"
    )
    lines = [f"secret = {_toml(secret)}  # {what}"]
    if event:
        lines += [
            f"expected_event_id = {_toml(event.id)}",
            f"expected_event_type = {_toml(event.type)}",
        ]
    stamp = known.arguments.get("timestamp")
    if request.at is None and stamp is not None and stamp.header:
        lines += [f"verify_at = {int(stamp.parse(request.lowered()[stamp.header]))}"]
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _remarks(name: str, known: Guess, secret: str, event: Event | None) -> list[str]:
    remarks = []
    if known.scheme in ("Hmac", *_BY_KEY_PAIR) and known.found:
        what = "the key" if known.scheme in _BY_KEY_PAIR else "the secret"
        remarks.append(f"{what} verifies it: {_call(known.scheme, known.own).replace('kit.', '')}")
    elif known.scheme == "Token":
        remarks.append(f"nothing is signed, the secret comes along: {_call(known.scheme, known.arguments)}")
    elif not known.found:
        remarks.append(f"{_unsure(secret)}; correct `scheme` in the module")
    if event:
        remarks.append(
            f"its event is {event.id} of type {event.type}; correct `events` in the module if it is not"
        )
    else:
        remarks.append("its event could not be read; correct `events` in the module")
    if known.found and event:
        proposed = source_table(name, known).splitlines()
        remarks += [
            "no module is needed for this: in hookonce.toml it is",
            *(f"    {line}" for line in proposed),
        ]
    return remarks


def _unsure(secret: str) -> str:
    if secret:
        return "no way of signing that was tried fits this secret, or public key"
    return "how it is signed is a guess; with --secret it would be tried out"
