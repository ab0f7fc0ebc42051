"""Sessions of people: a cookie says whose it is, signed with a key of the admin token; the ledger says who signed out.

So every process knows every session, and a new token ends them all. The key is stretched (scrypt): who gets
hold of a cookie learns nothing that would help to guess the token.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta

from itsdangerous import BadData, URLSafeTimedSerializer

from hookonce.receiver.desk.rows import Scope, Token

SESSION_TTL = timedelta(hours=12)
"""A session's life, and that of a sign-in link."""
UNGUESSABLE_LENGTH = 32
"""Characters of a token that nobody guesses through a network, however fast: `openssl rand -hex 24` makes 48."""
_MAX_NAME_LENGTH = 60
_TOKEN_LENGTH = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Session:
    """One sign-in: a random id, the name that the audit gets, and what it may do.

    `token_id` is that of an API token: the session ends with it. None of the admin token.
    """

    id: str
    who: str
    scopes: tuple[str, ...] = (Scope.ADMIN.value,)
    token_id: int | None = None

    @property
    def token(self) -> Token:
        """The session as the desk asks what it may do."""
        return Token(
            id=self.token_id or 0,
            name=self.who,
            scopes=list(map(Scope, self.scopes)),
            created_at=datetime.now(UTC),
            expires_at=None,
            is_expired=False,
        )


class Sessions:
    """Makes and reads cookies, form tokens and sign-in links; for one admin token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._key = hashlib.scrypt(self._token, salt=b"hookonce dashboard", n=2**14, r=8, p=1, dklen=32)
        options = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        self._cookies = URLSafeTimedSerializer(self._key, salt="session", signer_kwargs=options)
        self._links = URLSafeTimedSerializer(self._key, salt="link", signer_kwargs=options)

    def is_token(self, typed: str) -> bool:
        """Compare with the admin token, in the same time wherever they differ."""
        return hmac.compare_digest(_digest(typed.encode("utf-8", "replace")), _digest(self._token))

    @property
    def is_guessable(self) -> bool:
        """Whether the token is so short that it may be a phrase, which has to be protected from guessing."""
        return len(self._token) < UNGUESSABLE_LENGTH

    def begin(self, name: str, token: Token | None = None) -> Session:
        """Return a new session for whoever gave this name, or none; of an API token under its name and its scopes."""
        if token is not None:
            return Session(
                secrets.token_urlsafe(16), f"{token.name} (dashboard)", tuple(token.scopes), token.id
            )
        shown = "".join(sign for sign in name if sign.isprintable()).strip()[:_MAX_NAME_LENGTH]
        return Session(secrets.token_urlsafe(16), f"{shown} (dashboard)" if shown else "admin (dashboard)")

    def cookie(self, session: Session) -> str:
        """Write a session as a cookie."""
        return str(self._cookies.dumps(astuple(session)))

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it is not ours, or over."""
        try:
            number, who, scopes, token = self._cookies.loads(cookie, max_age=int(SESSION_TTL.total_seconds()))
            return Session(number, who, tuple(scopes), token)
        except (BadData, TypeError, ValueError):
            return None

    def form_token(self, session: Session) -> str:
        """Return what each form of a session carries, so that no other site can send one.

        It is masked with bytes of its own for each answer: how well an answer compresses tells nothing of it.
        """
        mask = secrets.token_bytes(_TOKEN_LENGTH)
        return base64.urlsafe_b64encode(mask + _xor(mask, self._form_digest(session))).decode()

    def is_form_token(self, session: Session, typed: str) -> bool:
        """Compare with the session's form token, in the same time wherever they differ."""
        try:
            read = base64.urlsafe_b64decode(typed.encode() + b"==")
        except ValueError:  # not base64, or not UTF-8
            return False
        mask, masked = read[:_TOKEN_LENGTH], read[_TOKEN_LENGTH:]
        is_whole = len(read) == 2 * _TOKEN_LENGTH
        return is_whole and hmac.compare_digest(_xor(mask, masked), self._form_digest(session))

    def _form_digest(self, session: Session) -> bytes:
        return hmac.digest(self._key, b"form " + session.id.encode(), "sha256")

    def link(self) -> str:
        """Return a sign-in link's secret part. The page that takes it notes its `link_id`, so that it works once."""
        return str(self._links.dumps(secrets.token_urlsafe(16)))

    def link_id(self, link: str) -> str | None:
        """Read a link; None if it is not ours, or too old."""
        try:
            return str(self._links.loads(link, max_age=int(SESSION_TTL.total_seconds())))
        except BadData:
            return None


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
