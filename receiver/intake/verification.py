"""Proves who sent a delivery, and reads its events; answers the probes that senders make of a URL.

Which of a source's secrets verified it is counted too, so that an operator sees when the old one may go. A secret is
known by its number, its place in the configuration from 1: what is counted says nothing about the secret itself.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from hookonce.providers import Delivery, Event, Reason, Rejected, Reply
from hookonce.providers.kit.events.declare import unreadable_delivery
from hookonce.providers.kit.reading.bodies import read_leniently
from hookonce.providers.kit.reading.content_coding import coding_of, decoded, without_coding
from hookonce.providers.kit.signing.verdict import MAX_EVENTS
from hookonce.receiver.failpoints import reach
from hookonce.receiver.intake.background_writer import BackgroundWriter
from hookonce.receiver.intake.handshake_secrets import HandshakeSecrets
from hookonce.receiver.outbound.key_fetcher import KeyFetcher, KeyUnavailable
from hookonce.receiver.source import Source

_UNREADABLE = frozenset({Reason.BAD_BODY, Reason.BAD_HEADER, Reason.MISSING_HEADER, Reason.TOO_LARGE})
"""Why a genuine delivery may be unreadable: larger than it is read, too, as far as the door took it."""
MAX_COPIED_HEADERS = 64 * 1024 * 1024
"""Characters of headers that one delivery may bring, since each of its events keeps them."""


class Unproven(Rejected):
    """A delivery does not prove its sender: what should prove it is wrong, malformed or not there."""


class Authentic(NamedTuple):
    """A delivery that was verified, its events, and its parts that were not, each with the reason."""

    delivery: Delivery
    events: list[Event]
    refused: list[tuple[Delivery, Rejected]]


class Verifier:
    """Verifies deliveries, with the keys that senders publish and the secrets that they have handed out."""

    def __init__(
        self,
        max_body: int,
        handshake_secrets: HandshakeSecrets | None = None,
        background_writer: BackgroundWriter | None = None,
    ) -> None:
        """Without a writer nothing is counted, and without `handshake_secrets` nothing that is handed out is kept."""
        self._key_fetcher = KeyFetcher()
        self._max_body = max_body
        self._handshake_secrets = handshake_secrets
        self._background_writer = background_writer

    def reply_to_probe(self, source: Source, delivery: Delivery) -> Reply | None:
        """Answer a probe as its sender wants, keeping the secret that it hands out; None for what is not a probe.

        A body that can't be read is no probe. OPTIONS that no sender answers otherwise is told the methods.
        Raises `Rejected` and `KeyUnavailable`.
        """
        reply = self._answer(source, delivery)
        if reply is not None and reply.fetch is not None:
            self._key_fetcher.confirm(source, reply.fetch)
        if reply is not None and reply.secret is not None and self._handshake_secrets:
            self._handshake_secrets.accept(source, reply.secret)
        if reply is None and delivery.method == "OPTIONS":
            return Reply(status=204, headers={"Allow": ", ".join((*source.provider.methods, "OPTIONS"))})
        return reply

    def is_probe(self, source: Source, delivery: Delivery) -> bool:
        """Whether a delivery is a probe; nothing is answered or kept. Raises as `reply_to_probe`."""
        return self._answer(source, delivery) is not None

    def _answer(self, source: Source, delivery: Delivery) -> Reply | None:
        handshake = source.provider.handshake
        if handshake is None:
            return None
        try:
            return self._key_fetcher.call_with_keys(source, handshake, delivery, source.secrets)
        except Rejected as error:
            if error.reason is not Reason.BAD_BODY:
                raise
            return None

    def authenticate(self, source: Source, delivery: Delivery, now: datetime) -> Authentic:
        """Verify a delivery; return it as it is to be kept (inflated, and decrypted), with its events.

        Of a sender that signs parts one by one, the parts that do not verify are `refused`, and have no events.
        A delivery that verifies and that its adapter can't read is one event of type `unreadable`, unless the source
        verifies nothing. Raises `Rejected`, as `Unproven` where the sender is not proven, and `KeyUnavailable`.
        """
        limit = source.body_limit(self._max_body)
        if source.provider.verifies_text:
            delivery = decoded(delivery, limit)
        refused = self._verify_parts(source, delivery, now)
        reach("delivery.verified")
        try:
            delivery = decoded(delivery, limit)
            delivery, events = self.read(source, delivery)
            return Authentic(
                delivery, [each for at, each in enumerate(events) if at not in refused], [*refused.values()]
            )
        except Rejected as error:
            for _, first in refused.values():  # what is unreadable is kept whole, and not all of it is proven
                raise first from None
            is_bomb = (
                error.reason is Reason.TOO_LARGE and delivery.sent is None and coding_of(delivery.headers)
            )
            is_unproven = source.unauthenticated and source.broker is None
            if is_unproven or error.reason not in _UNREADABLE or is_bomb:
                raise
            return Authentic(delivery, [unreadable_delivery(source.provider.events, delivery, error)], [])

    def verify_whole(self, source: Source, delivery: Delivery, now: datetime) -> None:
        """Verify a delivery and each of its parts. Raises as `verify`."""
        for _, error in self._verify_parts(source, delivery, now).values():
            raise error

    def _verify_parts(
        self, source: Source, delivery: Delivery, now: datetime
    ) -> dict[int, tuple[Delivery, Rejected]]:
        """Verify a delivery, part by part if its sender signs them so; return those that do not verify, by place.

        Raises as `verify`, where none does.
        """
        parts = [delivery]
        if source.provider.parts and not source.unauthenticated:
            with suppress(Rejected):  # `verify` says why it can't be read
                parts = source.provider.parts(delivery)
        refused = {}
        for at, part in enumerate(parts):
            try:
                self.verify(source, part, now)
            except Rejected as error:
                if len(parts) == 1:
                    raise
                refused[at] = (part, error)
        if len(refused) == len(parts):
            raise refused[0][1]
        return refused

    def verify(self, source: Source, delivery: Delivery, now: datetime) -> None:
        """Verify a delivery. Raises `Rejected`, as `Unproven` where the sender is not proven, and `KeyUnavailable`."""
        if delivery.method == "HEAD":
            raise Rejected(Reason.BAD_METHOD, f"{delivery.method} is not how webhooks are delivered")
        if source.unauthenticated:
            return
        if not source.secrets and source.provider.needs_secret:
            missing = f"source '{source.name}' has no signing secret; set {source.secret_places}"
            raise Rejected(Reason.NO_SECRET, missing)

        try:
            number = verify_and_find_secret(partial(self._check, source, delivery, now), source.secrets)
        except Rejected as error:
            raise Unproven(error.reason, error.detail) from None
        if number is not None and self._background_writer:
            self._background_writer.record_secret_use(source.name, number)

    def _check(self, source: Source, delivery: Delivery, now: datetime, secrets: Sequence[str]) -> None:
        """Verify with secrets, and where JSON can't be read strictly once more as it can. Raises as `verify`."""
        try:
            self._check_within(source, delivery, now, secrets)
        except Rejected:
            lenient = read_leniently(delivery)
            if lenient is None:
                raise
            self._check_within(source, lenient, now, secrets)

    def _check_within(
        self, source: Source, delivery: Delivery, now: datetime, secrets: Sequence[str]
    ) -> None:
        """Verify within the tolerance that the source says.

        Where it is wider, a stale delivery is verified once more, as of the time that was signed; where it is narrower,
        each delivery is, as if the difference had passed.
        """
        tolerance, usual, verify = source.tolerance, source.provider.tolerance, source.provider.verify
        call = self._key_fetcher.call_with_keys
        try:
            call(source, verify, delivery, secrets, now)
        except Rejected as error:
            age = error.age if error.reason is Reason.STALE and usual is not None else None
            if age is None or tolerance is None or age > tolerance:
                raise
            call(source, verify, delivery, secrets, now - age)
        else:
            if tolerance is not None and usual is not None and tolerance < usual:
                call(source, verify, delivery, secrets, now + (usual - tolerance))

    def read(self, source: Source, delivery: Delivery) -> tuple[Delivery, list[Event]]:
        """Read the events of a delivery that was verified; see `authenticate`. Raises `Rejected`."""
        provider = source.provider
        if provider.decode:
            opened = provider.decode(delivery, source.secrets)
            if delivery.sent is not None and opened.body is not delivery.body:
                opened = replace(opened, headers=without_coding(opened.headers), sent=None)
            delivery = opened
        events = provider.events(delivery)
        if len(events) > MAX_EVENTS:
            raise Rejected(Reason.TOO_LARGE, f"{len(events)} events in one delivery, {MAX_EVENTS} are taken")
        if len(events) > 1 and len(events) * sum(map(len, delivery.headers.values())) > MAX_COPIED_HEADERS:
            raise Rejected(Reason.TOO_LARGE, f"headers too long to be kept {len(events)} times")
        reach("delivery.parsed")
        return delivery, events


def verify_and_find_secret(verify: Callable[[Sequence[str]], None], secrets: Sequence[str]) -> int | None:
    """Verify with each secret alone, the first one first; return the number of the one that verifies, from 1.

    None where there is no secret, or where no single one is enough.

    What no secret verifies alone is put to all of them at once, as providers expect: theirs is the verdict, and
    the reason that the sender and the operator see. So the usual delivery costs one signature, and only a
    rejected one costs more than it did. Raises what `verify` raises with all secrets.
    """
    if len(secrets) > 1:
        for number, secret in enumerate(secrets, 1):
            with suppress(Rejected, KeyUnavailable):
                verify((secret,))
                return number
    verify(secrets)
    return 1 if len(secrets) == 1 else None
