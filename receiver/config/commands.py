"""`[commands.NAME]`: what clients may ask for under an `Idempotency-Key`, and who they are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from hookonce.receiver.config.secret_references import NeededSecret
from hookonce.receiver.source import TABLE, Horizon, Limit, Rate, Required, Span

COMMAND = "command"
"""The provider of an event that is a command."""
REFUSAL = "hookonce_refusal"
"""The one name in the result of a command that was refused: status, code and detail."""
MIN_TOKEN_LENGTH = 16
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_HANDLER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
_NEVER_KEPT = frozenset({"authorization", "proxy-authorization", "cookie", "idempotency-key"})
_IN_PROGRESS = re.compile(r"202|409|wait ([1-9]|[12]\d|30)s")


def _per_second(value: object) -> Limit | None:
    """Read a limit, which may be a number for each second. Raises: ValueError saying what was expected."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return Limit.parse(value)
    if value <= 0:
        raise ValueError('expected more than none, like "600/m"')
    return Limit(max(1, round(value)), timedelta(seconds=max(1, round(value)) / value))


def _tokens(found: tuple[str, ...]) -> tuple[str, ...]:
    tokens = tuple(filter(None, found))
    if any(len(token) < MIN_TOKEN_LENGTH for token in tokens):
        raise ValueError(f"a token is shorter than {MIN_TOKEN_LENGTH} characters")
    return tokens


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that clients may ask for.

    `auth` has the tokens themselves.
    """

    __pydantic_config__ = TABLE

    name: Required[str]
    handler: str
    """the function that does it: `module:function`"""
    auth: dict[str, Annotated[tuple[NeededSecret, ...], AfterValidator(_tokens)]] = field(repr=False)
    """clients that may ask: for each of them references to its bearer tokens, several while you rotate"""
    in_progress: str = "wait 2s"
    """answer while it runs: `"202"`, `"409"`, or `"wait 2s"` (up to 30s) before that; `Prefer: respond-async`
    does not wait"""
    dialect: Literal["hookonce", "ietf"] = "hookonce"
    """`"ietf"`: 409 while it runs, 422 for another request under a known key"""
    tenant: str = ""
    """a header that every request must have; keys belong to its value"""
    actor: str = ""
    """a header that names the actor within a tenant"""
    headers: tuple[str, ...] = ()
    """headers included in the request's fingerprint"""
    version: str = ""
    """version of your API; a key of another version is another request's"""
    status: Annotated[int, Field(ge=200, le=299)] = 200
    """status of the answer to a command that was done"""
    max_body: Annotated[int, Field(ge=64, le=1 << 20)] = 65536
    """bytes of a body; 413 beyond"""
    rate: Annotated[Limit | None, BeforeValidator(_per_second)] = None
    """requests of each client, like `600/m` (a number is by the second); 429 beyond"""
    quota: Rate | None = None
    """new keys of each client, like `10000/d`; 429 beyond, but for known keys"""
    keep_events: Horizon | None = None
    """how long a key is known, or `"forever"`; as in `[receiver]` by default"""
    attempts: Annotated[int, Field(ge=1, le=1000)] = 10
    """how often the handler may fail, the first included"""
    timeout: Span = timedelta(seconds=30)
    """for one attempt, an hour at most"""

    @property
    def source(self) -> str:
        """The source of its events and the handler of its runs; no configured source can have that name."""
        return f"commands.{self.name}"


def read_commands(tables: Mapping[str, Command], mistakes: list[str]) -> dict[str, Command]:
    """Return the commands by their tables, adding to `mistakes` whatever is wrong with them."""
    for name, table in tables.items():
        mistakes += [f"[commands.{name}] {each}" for each in _mistakes(name, table)]
    return {name: replace(table, name=name) for name, table in tables.items()}


def _mistakes(name: str, table: Command) -> list[str]:
    wrong = []
    if not _NAME.fullmatch(name):
        wrong.append("the name must be 1 to 63 of a-z 0-9 _ - and start with a letter or digit")
    if not _HANDLER.fullmatch(table.handler):
        wrong.append(f"handler: {table.handler!r} names no function; expected one like 'shop:create_payment'")
    if not _IN_PROGRESS.fullmatch(table.in_progress):
        wrong.append(
            f"in_progress: {table.in_progress!r} is not known; expected '202', '409' or 'wait 2s', up to 30s"
        )
    if table.dialect == "ietf" and table.in_progress == "202":
        wrong.append("in_progress: the dialect 'ietf' answers 409; expected '409' or 'wait 2s'")
    if not timedelta(0) < table.timeout <= timedelta(hours=1):
        wrong.append("timeout: expected more than nothing and an hour at most")
    named = filter(None, (table.tenant, table.actor, *table.headers))
    wrong += [f"{header!r} is not the name of a header" for header in named if not _HEADER.fullmatch(header)]
    kept = {header.lower() for header in (table.tenant, table.actor, *table.headers) if header}
    wrong += [
        f"{header!r} holds a secret or the key, and would be stored" for header in sorted(kept & _NEVER_KEPT)
    ]
    if not table.auth:
        wrong.append('auth: nobody may ask for it; name a client, as in auth = { shop = ["env:SHOP_TOKEN"] }')
    wrong += [
        f"auth: {client!r} can't be the name of a client"
        for client in table.auth
        if not _NAME.fullmatch(client)
    ]
    every = [token for tokens in table.auth.values() for token in tokens]
    if len(set(every)) < len(every):
        wrong.append("auth: a token is named twice")
    return wrong
