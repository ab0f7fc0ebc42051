"""`[admin]`: the dashboard, which is off unless there is a token to sign in with."""

import ipaddress
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from hookonce.receiver.config.rates import limit_or_none
from hookonce.receiver.config.secret_references import resolve
from hookonce.receiver.source import Limit

VARIABLE = "HOOKONCE_ADMIN_TOKEN"
MIN_TOKEN_LENGTH = 16
"""Characters of a token: few enough to type once a day, too many to guess through a throttle."""


class AdminTable(BaseModel):
    """The keys of `[admin]`."""

    model_config = ConfigDict(extra="forbid")

    token: str | None = Field(
        default=None, description="reference to what signs in to the dashboard; HOOKONCE_ADMIN_TOKEN wins"
    )
    trusted_proxies: list[str] = Field(
        default_factory=list,
        description="addresses or networks of your proxies; from these, `X-Forwarded-For` identifies the client for "
        "rate limiting",
    )
    token_rate: Annotated[Limit | None, BeforeValidator(limit_or_none)] = Field(
        default=None, description="requests of each token of the API, like `600/m`; 429 beyond"
    )
    token_quota: Annotated[Limit | None, BeforeValidator(limit_or_none)] = Field(
        default=None, description="requests of each token within a longer time, like `100000/d`"
    )
    hosts: list[str] = Field(
        default_factory=list,
        description="names under which a proxy on this machine hands the console and the API on, beside `public_url`'s",
    )
    send_to: list[str] = Field(
        default_factory=list,
        description="addresses that events may be sent to again from their page, each with what is below it",
    )


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def trusted_proxies(table: AdminTable, mistakes: list[str]) -> tuple[Network, ...]:
    """Return the networks of the proxies that stand before the dashboard."""
    networks = []
    for text in table.trusted_proxies:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            mistakes.append(
                f"[admin] trusted_proxies: {text!r} is not an address or network; expected such as '10.0.0.0/8'"
            )
    return tuple(networks)


def send_to(table: AdminTable, mistakes: list[str]) -> tuple[str, ...]:
    """Return the addresses that events may be sent to again."""
    for text in table.send_to:
        parts = urlsplit(text)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or "@" in parts.netloc:
            mistakes.append(
                f"[admin] send_to: {text!r} is not an address; expected one such as 'http://localhost:8000/hooks/'"
            )
    return tuple(table.send_to)


def admin_token(
    table: AdminTable, environ: Mapping[str, str], mistakes: list[str], *, need_secrets: bool
) -> str:
    """Return the token, '' where the dashboard is off; the variable wins over the file."""
    try:
        token = environ.get(VARIABLE, "").strip() or (resolve(table.token, environ) if table.token else "")
    except ValueError as error:
        if need_secrets:
            mistakes.append(f"[admin] token: {error}")
        return ""
    if token and len(token) < MIN_TOKEN_LENGTH:
        mistakes.append(
            f"the admin token has {len(token)} characters; expected {MIN_TOKEN_LENGTH} or more, "
            f"say of `openssl rand -hex 24`, in {VARIABLE} or where [admin] token points"
        )
    return token
