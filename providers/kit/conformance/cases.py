"""Captured deliveries as files, and the questions that checks put to a provider.

Either one JSON file holds all of it, or a `.http` file (`providers.kit.http_file`) is the delivery and
a `.toml` or `.json` file of the same name beside it has the rest: anything but method, headers and body.

{"secret": …, "headers": {…}, "body": "…" or "body_b64": "…", "verify_at": Unix seconds,
 "expected_event_id": id, list of ids, or null for a derived one, "expected_event_type": likewise,
 "method": "POST", "url": …, "expected_tenant": …, "options": the source's,
 "expected_response": {"status": 200, "json" or "body": …} for a probe of the URL,
 "expected_reason": "bad_signature" for a delivery that must be refused,
 "signing_secret": what signs, where `secret` is a public key or an account's name (empty: it is not known),
 "wrong_secret": another one that signs,
 "keys": {URL: document} that the receiver would fetch, "path_secret": what follows the source in the path,
 "timed": false for one without a signed time where others of this sender have one}

Of a sender with a key pair the private key is known to nobody but the sender. Where no `signing_secret` is said, the
delivery is a case as it came, and another one signed with a key of the kit's own, for all that has to be signed anew.
"""

import json
import tomllib
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from hookonce.providers import Delivery, Event, KeyNeeded, Reason, Rejected, Reply
from hookonce.providers.kit import http_file
from hookonce.providers.kit.crypto.public_keys import Algorithm, can_sign, new_key
from hookonce.providers.kit.crypto.secret_keys import wrong_secret
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.providers.kit.signing.verdict import SignOptions


@dataclass(frozen=True)
class Case:
    """One captured delivery, the provider it is for, and what should come of it.

    ids, types, accounts: what the events should have, None where nothing is expected
    reply: what the handshake should answer; reason: why the delivery should be refused
    timed: whether this delivery has a signed time, where the provider has a tolerance
    is_twin: whether the delivery is another case's, signed anew with a key of the kit's own
    signing: the secret that signs; wrong: one of the same form that is another's; keys: what can be fetched
    """

    name: str
    provider: Provider
    secret: str
    delivery: Delivery
    now: datetime
    ids: list[str] | None = None
    types: list[str] | None = None
    accounts: list[str] | None = None
    reply: dict[str, Any] | None = None
    reason: Reason | None = None
    timed: bool = True
    signing: str = ""
    wrong: str = ""
    keys: Mapping[str, bytes] = field(default_factory=dict)
    is_twin: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def is_genuine(self) -> bool:
        """Whether the delivery should be accepted as one or more events."""
        return self.reason is None and self.reply is None

    def events(self, delivery: Delivery) -> list[Event]:
        """Return the events of a verified delivery, decrypted if its sender encrypts. Raises: what a provider may."""
        decode = self.provider.decode
        return self.provider.events(decode(delivery, [self.secret]) if decode else delivery)

    def signed(
        self, body: bytes | None = None, secret: str | None = None, at: datetime | None = None
    ) -> Delivery:
        """Return a delivery of `body` (the case's own) as the provider itself would sign it."""
        body = self.delivery.body if body is None else body
        url, method = self.delivery.url, self.delivery.method
        kept = {key: value for key, value in self.delivery.headers.items() if key == "content-type"}
        if secret is None or secret == self.secret:
            secret = self.signing
        if not secret:
            return self.delivery
        made = self.provider.delivery(body, secret, at or self.now, url=url, method=method, headers=kept)
        return replace(made, headers={**made.headers, **kept})

    def verdict(
        self, delivery: Delivery, secrets: Sequence[str] | None = None, at: datetime | None = None
    ) -> Reason | None:
        """Why `delivery` is refused, None if accepted. Raises: AssertionError for any other exception."""
        known = [self.secret] if secrets is None else secrets
        try:
            return refusal(lambda: self.provider.verify(delivery, known, at or self.now, **self.fetched))
        except KeyNeeded:  # there is nothing more to be had
            return Reason.BAD_SIGNATURE

    def probe(self, delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Return the reply to `delivery` as a probe. Raises: what a handshake may."""
        handshake = self.provider.handshake
        try:
            return handshake(delivery, secrets, **self.fetched) if handshake else None
        except KeyNeeded:
            return None

    @property
    def fetched(self) -> dict[str, Mapping[str, bytes]]:
        """The keyword with the fetched keys, for providers that take it."""
        return {"keys": self.keys} if self.provider.takes_keys else {}


def refusal(call: Callable[[], object]) -> Reason | None:
    """Return the reason with which `call` raises Rejected, None if it raises nothing.

    Raises: KeyNeeded, AssertionError for any other exception.
    """
    try:
        call()
    except Rejected as error:
        return error.reason
    except (AssertionError, KeyNeeded):
        raise
    except Exception as error:
        raise AssertionError(
            f"only Rejected may leave a provider, this was {type(error).__name__}"
        ) from error
    return None


def expect(ok: object, complaint: str) -> None:
    """Raises: AssertionError with `complaint` unless `ok`."""
    if not ok:
        raise AssertionError(complaint)


def cases(folder: str | Path, name: str = "", places: Sequence[str] = ()) -> list[Case]:
    """Return the cases in the files of `folder`, for the provider `name` (the folder's name unless given).

    Raises: ValueError for a `.http` file that can't be read, or has no facts beside it.
    """
    path = Path(folder)
    files = sorted({file for end in ("json", "http") for file in path.glob(f"*.{end}")})
    whole = [file for file in files if file.suffix == ".http" or not file.with_suffix(".http").exists()]
    facts = {file: said(file) for file in whole}
    return [
        case
        for file, told in facts.items()
        for case in _cases(_case(file, told, name or path.name, places), told)
    ]


def said(file: Path) -> dict[str, Any]:
    """Return what a case's file says, or a `.http` file with the facts beside it. Raises: ValueError."""
    if file.suffix != ".http":
        return dict(json.loads(file.read_text(encoding="utf-8")))
    try:
        request = http_file.read(file.read_bytes())
    except ValueError as error:
        msg = f"{file}: {error}"
        raise ValueError(msg) from None
    facts = _facts(file)
    moment = {"verify_at": request.at} if request.at else {}
    url, path_secret = request.addressed(facts["secret"])
    return {
        "method": request.method,
        "url": url,
        "path_secret": path_secret,
        **moment,
        **facts,
        "headers": request.lowered(facts["secret"]),
        "raw": request.body,
    }


def _facts(file: Path) -> dict[str, Any]:
    """Raises: ValueError."""
    for beside, read in ((file.with_suffix(".toml"), tomllib.loads), (file.with_suffix(".json"), json.loads)):
        if beside.exists():
            facts = dict(read(beside.read_text(encoding="utf-8")))
            if isinstance(facts.get("secret"), str):
                return facts
    msg = (
        f'{file} has no facts beside it; write {file.with_suffix(".toml").name} with at least `secret = "…"`'
    )
    raise ValueError(msg)


def _cases(case: Case, facts: Mapping[str, Any]) -> list[Case]:
    """Return the case, and of a sender with a key pair another one that a key of the kit's own signed."""
    algorithm = case.provider.key_algorithm
    if algorithm is None or "signing_secret" in facts or can_sign(case.secret):
        return [case]
    own = _key(algorithm, 0)
    case = replace(case, signing="", wrong=_key(algorithm, 1))
    if not case.is_genuine:
        return [case]
    sent = case.delivery
    names = {"event_id": (case.ids or [""])[0], "type": (case.types or [""])[0]}
    told: SignOptions = {"url": sent.url, "method": sent.method, "headers": sent.headers, **names}  # type: ignore[typeddict-item]
    made = case.provider.delivery(sent.body, own, case.now, **told)
    signed = replace(made, headers={**sent.headers, **made.headers}, path_secret=sent.path_secret)
    twin = replace(case, name=f"{case.name}, signed by the kit", secret=own, signing=own, delivery=signed)
    return [case, replace(twin, accounts=None, timed=True, is_twin=True)]


@cache
def _key(algorithm: Algorithm, number: int) -> str:
    """Return one of the kit's own private keys."""
    del number
    return new_key(algorithm)


def _case(file: Path, said: Mapping[str, Any], name: str, places: Sequence[str]) -> Case:
    headers = {key.lower(): value for key, value in said["headers"].items()}
    path_secret = said.get("path_secret", "")
    method, url = said.get("method") or "POST", said.get("url") or ""
    return Case(
        name=f"{file.parent.name}/{file.stem}",
        provider=load(name, places, said.get("options")),
        secret=said["secret"],
        delivery=Delivery(method, url, headers, _body(said), path_secret),
        now=_moment(said.get("verify_at")),
        ids=_list(said.get("expected_event_id")),
        types=_list(said.get("expected_event_type")),
        accounts=_list(said.get("expected_tenant")),
        reply=said.get("expected_response"),
        reason=Reason(said["expected_reason"]) if "expected_reason" in said else None,
        timed=said.get("timed", True),
        signing=said.get("signing_secret", said["secret"]),
        wrong=said.get("wrong_secret") or wrong_secret(said["secret"]),
        keys={url: text.encode() for url, text in said.get("keys", {}).items()},
    )


def _body(said: Mapping[str, Any]) -> bytes:
    if "raw" in said:
        return bytes(said["raw"])
    return b64decode(said["body_b64"]) if said.get("body_b64") else str(said["body"]).encode()


def _moment(verify_at: datetime | float | None) -> datetime:
    return (
        verify_at if isinstance(verify_at, datetime) else datetime.fromtimestamp(verify_at or 1767225600, UTC)
    )


def _list(value: Any) -> list[str] | None:  # noqa: ANN401  a text, a list of them, or nothing
    return [value] if isinstance(value, str) else value
