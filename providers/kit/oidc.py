"""Google's tokens for service accounts (OIDC): they say who sends, and nothing about the body."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit.asymmetric import PublicKey, public_keys
from providers.kit.fetched import Documents, Owner, owner_of, owners_of
from providers.kit.jws import fetched_keys, keys_in, make
from providers.kit.jwt import Jwt
from providers.kit.signing import Said

_SECRET: Final = ("service_account", "jwks")


@dataclass(frozen=True, kw_only=True, eq=False)
class Oidc:
    """The scheme: the secret is an e-mail address, behind it a key of one's own if Google's are not to be fetched.

    url: where the key set is; audience: what `aud` must be, the source's own URL if empty
    """

    url: str
    patterns: tuple[str, ...]
    issuers: tuple[str, ...]
    audience: str = ""
    tolerance: timedelta = timedelta(hours=1)

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError unless it is an e-mail address."""
        if "@" not in owner_of(secret, *_SECRET).name:
            msg = "the secret is not usable; expected the service account's e-mail address"
            raise ValueError(msg)

    def verify(
        self, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None
    ) -> None:
        """Accept `delivery` if one of the service accounts sends it. Raises: Rejected, KeyNeeded."""
        owners = owners_of(secrets, *_SECRET)
        scheme = self._scheme()
        token = scheme.token(delivery)
        ours = [owner for owner in owners if owner.name and owner.name == token.claims.get("email")]
        if not ours or token.header.get("alg") != "RS256":
            raise Rejected(
                Reason.BAD_SIGNATURE, "the token is of none of the service accounts of this source"
            )
        found = [key for owner in ours for key in self._keys(owner, token.header.get("kid"), keys)]
        claims = scheme.check(delivery, found, now)
        if claims.get("email_verified") is not True or claims.get("aud") != (self.audience or delivery.url):
            raise Rejected(Reason.BAD_SIGNATURE, "the token is for another audience; set the option audience")

    def sign(self, body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
        """What Google would send. Raises: ValueError unless `secret` is `email:PEM` with a private key."""
        owner = owner_of(secret, *_SECRET)
        claims: dict[str, Any] = self._scheme().claims(body, now, **said)
        claims |= {"aud": self.audience or said.get("url", ""), "email": owner.name, "email_verified": True}
        token = make(claims, owner.key, "RS256")
        return {"content-type": "application/json", "authorization": f"Bearer {token}"}

    def _scheme(self) -> Jwt:
        return Jwt(
            algorithms=("RS256",),
            issuers=self.issuers,
            needs=("iat", "exp"),
            max_age=self.tolerance,
            lifetime=self.tolerance,
        )

    def _keys(self, owner: Owner, kid: object, keys: Documents) -> list[PublicKey]:
        """Those that may have signed. Raises: KeyNeeded, again if the key set does not know `kid`."""
        if owner.key.startswith("{"):
            return keys_in(owner.key.encode(), kid)
        if owner.key:
            return public_keys([owner.key], "rsa-sha256")
        return fetched_keys(self.url, keys, self.patterns, kid)
