"""The files of a new provider that is made of a captured delivery."""

import json
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from providers import Delivery, Event, Rejected, kit
from providers.kit import Timestamp, one_event
from providers.kit.conformance import captured
from receiver.cli.new_guess import Guess, guess

_FEW = 2  # arguments that go on one line
_MODULE = string.Template('''\
"""$summary

Say here what surprises: whether the id is the same on every retry, what is not covered by the signature, for how
long it retries. Then link to the sender's own page.

https://example.com/docs/webhooks
"""

from providers.kit import $names

scheme = $scheme
$exports
events = one_event($places)
$flags''')

_TEST = string.Template("""\
from pathlib import Path

import pytest

from providers.kit.conformance import CHECKS, cases

HERE = Path(__file__).parent
PLACES = [str(HERE.parents[2] / "$folder")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", cases(HERE, "$name", PLACES), ids=str)
def test_${name}_keeps_the_contract(case, check):
    check(case)
""")


def files(name: str, folder: Path, source: Path, secret: str) -> tuple[dict[Path, bytes], list[str]]:
    """Give path and content of each file, and what to tell the user. Raises: click.ClickException."""
    raw, request = _read(source)
    known = guess(request, secret)
    if known is None:
        raise click.ClickException(
            f"nothing in {source} looks like a signature or a masked token; leave out --from and fill the module in"
        )
    tests = Path("tests", "providers", name)
    event = _event(known, request)
    contents = {
        folder / f"{name}.py": _module(name, known),
        tests / f"test_{name}.py": _TEST.substitute(name=name, folder=folder.as_posix()),
        tests / f"{source.stem}.toml": _facts(known, request, secret, event),
    }
    encoded = {path: text.encode("utf-8", "replace") for path, text in contents.items()}
    return {**encoded, tests / source.name: raw}, _told(known, secret, event)


def _read(source: Path) -> tuple[bytes, captured.Captured]:
    try:
        raw = source.read_bytes()
        return raw, captured.read(raw)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{source} can't be read: {error}") from None


def _module(name: str, known: Guess) -> str:
    how = "sends a shared token and signs nothing" if known.scheme == "Token" else "signs"
    signed = known.arguments.get("signed", "{body}")
    what = {
        "Hmac": f"{how} `{signed}` with HMAC-{known.arguments.get('hash', 'sha256').upper()}".replace(
            "\n", "\\n"
        ),
        "StandardWebhooks": f"{how} as Standard Webhooks do",
        "Token": how,
    }[known.scheme]
    timed = known.scheme == "StandardWebhooks" or "timestamp" in known.arguments
    names = {known.scheme, "one_event", "signer", *(place[0] for place in known.places.values())} - {
        "scheme.id"
    }
    names |= {"Timestamp"} if "timestamp" in known.arguments else set()
    headers = {"event_id": known.in_headers.get("id"), "type": known.in_headers.get("type")}
    extra = "".join(f', {key}="{header}"' for key, header in headers.items() if header)
    is_unsigned = "id" in known.in_headers and "{header:" not in signed
    flags = [*(["ID_IS_SIGNED = False"] if is_unsigned else [])]
    flags += ["BODY_IS_UNSIGNED = True"] if known.scheme == "Token" else []
    exports = ("verify", "sign", "CHECK", *(["TOLERANCE"] if timed else []))
    values = ("scheme.verify", f"signer(scheme.sign{extra})", "scheme.check_secret", "scheme.tolerance")
    return _MODULE.substitute(
        summary=f"{name.replace('_', ' ').title()} {what}.",
        names=", ".join(sorted(names, key=lambda each: (each.islower(), each))),
        scheme=_call(known.scheme, known.arguments, apart=len(known.arguments) > _FEW),
        exports=f"{', '.join(exports)} = {', '.join(values[: len(exports)])}",
        places="\n" + "".join(f"    {key}={_place(*place)},\n" for key, place in known.places.items()),
        flags="".join(f"{flag}\n" for flag in flags),
    )


def _call(function: str, arguments: Mapping[str, Any], *, apart: bool = False) -> str:
    said = [f"{key}={_value(value)}" for key, value in arguments.items()]
    return (
        f"{function}(\n    {f',{chr(10)}    '.join(said)},\n)" if apart else f"{function}({', '.join(said)})"
    )


def _value(value: object) -> str:
    if isinstance(value, Timestamp):
        said = {"header": value.header, "key": value.key, "unit": "" if value.unit == "s" else value.unit}
        return _call("Timestamp", {key: text for key, text in said.items() if text})
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _place(function: str, *arguments: str) -> str:
    if function == "scheme.id":
        return function
    return f"{function}({', '.join(map(json.dumps, arguments))})"


def _event(known: Guess, request: captured.Captured) -> Event | None:
    """What the module will make of the delivery."""
    headers = request.lowered()
    place = {
        key: getattr(kit, said[0])(*said[1:]) for key, said in known.places.items() if said[0] != "scheme.id"
    }
    if known.scheme == "StandardWebhooks":
        place["id"] = kit.StandardWebhooks(**known.arguments).id
    try:
        return one_event(**place)(Delivery(request.method, request.url, headers, request.body))[0]
    except Rejected:
        return None


def _facts(known: Guess, request: captured.Captured, secret: str, event: Event | None) -> str:
    lines = [f"secret = {_toml(secret)}  # what it was signed with; roll it before you commit this"]
    lines += ['evidence = "captured"']
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


def _told(known: Guess, secret: str, event: Event | None) -> list[str]:
    told = []
    if known.found:
        told.append(f"the secret verifies it: {_call(known.scheme, known.arguments)}")
    elif known.scheme == "Hmac" and secret:
        told.append("no way of signing that was tried fits this secret; correct `scheme` in the module")
    elif known.scheme == "Hmac":
        told.append("how it is signed is a guess; with --secret it would be tried out")
    if event:
        told.append(
            f"its event is {event.id} of type {event.type}; correct `events` in the module if it is not"
        )
    else:
        told.append("its event could not be read; correct `events` in the module")
    return told
