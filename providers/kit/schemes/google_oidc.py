"""Google's tokens for service accounts (OIDC): they say who sends, and nothing about the body."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto.fetched_keys import Documents, Owner, owner_of, owners_of
from hookonce.providers.kit.crypto.jws import fetched_keys, keys_in, make
from hookonce.providers.kit.crypto.public_keys import PublicKey, public_keys
from hookonce.providers.kit.schemes.jwt import Jwt
from hookonce.providers.kit.signing.verdict import SignOptions

_SECRET: Final = ("service_account", "jwks")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Oidc:
    """The scheme: the secret is an e-mail address, behind it a key of one's own if Google's are not to be fetched.

    url: where the key set is; audience: what `aud` must be, the source's own URL if empty
    is_issuer: the account itself is the tokens' issuer, and they name no e-mail address besides
    """

    url: str
    patterns: tuple[str, ...]
    issuers: tuple[str, ...]
    audience: str = ""
    is_issuer: bool = False
    tolerance: timedelta = timedelta(hours=1)

    @property
    def proof(self) -> tuple[str, ...]:
        """The place of the token."""
        return ("header:authorization",)

    @property
    def signs_body(self) -> bool:
        """False: the token says nothing about the body."""
        return False

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
        account = token.claims.get("iss" if self.is_issuer else "email")
        ours = [owner for owner in owners if owner.name and owner.name == account]
        if not ours or token.header.get("alg") != "RS256":
            raise Rejected(
                Reason.BAD_SIGNATURE, "the token is of none of the service accounts of this source"
            )
        found = [key for owner in ours for key in self._keys(owner, token.header.get("kid"), keys)]
        claims = scheme.check(delivery, found, now)
        is_known = self.is_issuer or claims.get("email_verified") is True
        if not is_known or claims.get("aud") != (self.audience or delivery.url):
            raise Rejected(Reason.BAD_SIGNATURE, "the token is for another audience; set the option audience")

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return what Google would send. Raises: ValueError unless `secret` is `email:PEM` with a private key."""
        owner = owner_of(secret, *_SECRET)
        claims: dict[str, Any] = self._scheme().claims(body, now, **options)
        named = {"iss": owner.name} if self.is_issuer else {"email": owner.name, "email_verified": True}
        claims |= {"aud": self.audience or options.get("url", ""), **named}
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
        """Return those that may have signed. Raises: KeyNeeded, again if the key set does not know `kid`."""
        if owner.key.startswith("{"):
            return keys_in(owner.key.encode(), kid)
        if owner.key:
            return public_keys([owner.key], "rsa-sha256")
        return fetched_keys(self.url, keys, self.patterns, kid)
