"""TrueLayer sends a detached token (JWS, ES512) in `Tl-Signature`, of the path of our URL, some headers and the body.

Signed is `POST <path>`, a line for each header that the token's `tl_headers` names, and the body. The key is fetched
from TrueLayer's set for the option `environment`, production or sandbox; a secret, if there is one, is the key itself
(PEM, a JWK or a JWK set). All of TrueLayer's clients share its keys, and neither our host nor our account is signed:
only the path tells our deliveries from those of another client. So give the source a name that nobody guesses, or act
only on payments that you know. The id is `$.event_id`; attempts follow for 72 hours, each with its own time in
`X-Tl-Webhook-Timestamp`.

https://github.com/TrueLayer/truelayer-signing/blob/main/request-signing-v2.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Unpack
from urllib.parse import urlsplit

from hookonce.providers import Delivery, Reason, Rejected, kit

_SIGNATURE: Final = "tl-signature"
_TIME: Final = kit.Timestamp(header="x-tl-webhook-timestamp", unit="iso", tolerance=kit.hours(73))
_HOSTS: Final = {
    "production": "webhooks.truelayer.com",
    "sandbox": "webhooks.truelayer-sandbox.com",
}
_MAX_HEADERS: Final = 16
events = kit.one_event(
    id="$.event_id",
    type=kit.first("$.type", "$.event_type"),
    occurred_at=kit.first(
        "$.executed_at", "$.settled_at", "$.failed_at", "$.authorized_at", "header x-tl-webhook-timestamp"
    ),
)


@dataclass(frozen=True, eq=False)
class _Scheme:
    """The scheme with the URL of TrueLayer's key set."""

    jwks: str
    signs_body: bool = True
    tolerance: timedelta | None = _TIME.tolerance
    key_algorithm: kit.public_keys.Algorithm = "ecdsa-sha512"

    def verify(
        self, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: kit.Documents = None
    ) -> None:
        """Accept `delivery` if a key of `secrets`, or of the set, signed it. Raises: Rejected, KeyNeeded."""
        source = kit.jws.KeySource(secrets, self.jwks, keys)
        source.expect_usable(("ES512",))
        if _SIGNATURE not in delivery.headers:
            raise Rejected(Reason.MISSING_HEADER, f"header {_SIGNATURE} is missing")
        tokens = [_token(delivery, path) for path in _paths(delivery.url)]
        header = tokens[0].header
        if header.get("tl_version") != "2" or header.get("jku") != self.jwks:
            raise Rejected(Reason.BAD_SIGNATURE, "the token is not one of TrueLayer's for this environment")
        known = kit.jws.known_keys(source, header.get("kid"), "ES512")
        if not any(kit.jws.is_signed(token, known, ("ES512",)) for token in tokens):
            raise Rejected(Reason.BAD_SIGNATURE, "no key of this source signed the token")
        if _TIME.header in _named(header):
            _TIME.check(_TIME.parse(delivery.headers[_TIME.header]), now)

    def sign(
        self, body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]
    ) -> dict[str, str]:
        """Return what TrueLayer would send. Raises: ValueError unless `secret` is a private key."""
        sent = {_TIME.header: _TIME.write(now)}
        names = "X-Tl-Webhook-Timestamp"
        payload = _payload(
            options.get("method", "POST"), _paths(options.get("url", ""))[0], names, sent, body
        )
        header = {"tl_version": "2", "tl_headers": names, "jku": self.jwks}
        return {**sent, _SIGNATURE: kit.jws.make_detached(payload, secret, "ES512", header)}

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a key looks like."""
        kit.jws.expect_keys(secret, ("ES512",))


@kit.with_options("truelayer")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for an `environment`."""
    host = _HOSTS[given.choice("environment", ("production", "sandbox"))]
    scheme = _Scheme(f"https://{host}/.well-known/jwks")
    return kit.Configured(
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=kit.days(3),
            retries_on=kit.UNSUCCESSFUL,
            identity=kit.told_apart_by("$.event_id"),
            setup_url="https://console.truelayer.com/",
        ),
    )


def _token(delivery: Delivery, path: str) -> kit.jws.Token:
    """Return the token as it would be for this path. Raises: Rejected(bad_header, missing_header)."""
    text, where = delivery.headers[_SIGNATURE], f"header {_SIGNATURE}"
    header = kit.jws.read_detached(text, b"", where).header
    names = header.get("tl_headers", "")
    if not isinstance(names, str) or len(_named(header)) > _MAX_HEADERS:
        raise Rejected(Reason.BAD_HEADER, f"{where} names no list of headers")
    payload = _payload(delivery.method, path, names, delivery.headers, delivery.body)
    return kit.jws.read_detached(text, payload, where)


def _payload(method: str, path: str, names: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return what is signed. Raises: Rejected(missing_header) where a header that is signed was not sent."""
    lines = [f"{method.upper()} {path}"]
    for name in filter(None, names.split(",")):
        if name.lower() not in headers:
            raise Rejected(Reason.MISSING_HEADER, f"header {name.lower()[:64]} is signed and missing")
        lines.append(f"{name}: {headers[name.lower()]}")
    return "\n".join([*lines, ""]).encode("latin-1", "replace") + body


def _named(header: Mapping[str, object]) -> list[str]:
    return [name.lower() for name in str(header.get("tl_headers", "")).split(",")]


def _paths(url: str) -> tuple[str, str]:
    """Return the path of a URL without a slash at its end, and with one: TrueLayer's libraries take either."""
    path = urlsplit(url).path.rstrip("/")
    return path, f"{path}/"
