"""`[admin]`: the dashboard, which is off unless there is a token to sign in with."""

import ipaddress
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, PlainValidator

from hookonce.receiver.config.secret_references import NeededSecret
from hookonce.receiver.source import TABLE, Rate

ADMIN_TOKEN = "HOOKONCE_ADMIN_TOKEN"  # noqa: S105  a variable's name
MIN_TOKEN_LENGTH = 16
"""Characters of a token: few enough to type once a day, too many to guess through a throttle."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def network(text: object) -> Network:
    """Read an address or a network. Raises: ValueError saying what was expected."""
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not an address or network; expected such as '10.0.0.0/8'") from None


def _addresses(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return addresses that events may be sent to again. Raises: ValueError."""
    for text in texts:
        parts = urlsplit(text)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or "@" in parts.netloc:
            raise ValueError(
                f"{text!r} is not an address; expected one such as 'http://localhost:8000/hooks/'"
            )
    return texts


def _long_enough(token: str) -> str:
    if token and len(token) < MIN_TOKEN_LENGTH:
        raise ValueError(
            f"the admin token has {len(token)} characters; expected {MIN_TOKEN_LENGTH} or more, "
            f"say of `openssl rand -hex 24`, in {ADMIN_TOKEN} or where [admin] token points"
        )
    return token


@dataclass(frozen=True)
class Admin:
    """The keys of `[admin]`."""

    __pydantic_config__ = TABLE

    token: Annotated[NeededSecret, AfterValidator(_long_enough)] = field(default="", repr=False)
    """reference to what signs in to the dashboard; HOOKONCE_ADMIN_TOKEN wins"""
    trusted_proxies: tuple[Annotated[Network, PlainValidator(network)], ...] = ()
    """addresses or networks of your proxies; from these, `X-Forwarded-For` identifies the client for rate
    limiting"""
    token_rate: Rate | None = None
    """requests of each token of the API, like `600/m`; 429 beyond"""
    token_quota: Rate | None = None
    """requests of each token within a longer time, like `100000/d`"""
    hosts: tuple[str, ...] = ()
    """names under which a proxy on this machine hands the console and the API on, beside `public_url`'s"""
    send_to: Annotated[tuple[str, ...], AfterValidator(_addresses)] = ()
    """addresses that events may be sent to again from their page, each with what is below it"""
