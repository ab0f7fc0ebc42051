"""A source: one configured place that sends to us."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.reading.json_paths import Step

MAX_QUARANTINE_TIME = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Which rejected deliveries of a source are kept whole (`reasons`), and how many, of how many bytes, how long."""

    count: int = 1000
    size: int = 10_000_000
    time: timedelta = timedelta(days=7)
    reasons: tuple[str, ...] = ("bad_signature", "stale", "no_secret")


@dataclass(frozen=True, slots=True)
class Source:
    """One configured place that sends to us; its URL path is `/hooks/<name>`.

    `secrets` may be empty when every reference was optional: deliveries are then answered 503 `no_secret`, unless
    the sender has handed out a secret (`receiver.intake.handshake_secrets`).
    `unauthenticated`: anyone may send, which only a sender that proves nothing can be configured to.
    `redact`: places in the bodies of its events that are never stored.
    `quarantine`: which of its rejected deliveries are kept whole, and how many.
    `expect_every`: a longer silence raises an alert.
    `tests`: operators may send it test events.
    `references`: where its secrets are looked for, as the configuration says it; never a secret.
    """

    name: str
    provider: Provider
    secrets: tuple[str, ...]
    repeats: Literal["run", "hold"] = "run"
    conflicts: Literal["accept", "reject"] = "accept"
    window: timedelta = timedelta(hours=1)
    public_url: str = ""
    unauthenticated: bool = False
    redact: tuple[tuple[Step, ...], ...] = ()
    quarantine: Quarantine | None = None
    expect_every: timedelta | None = None
    tests: bool = False
    references: tuple[str, ...] = ()

    @property
    def secret_places(self) -> str:
        """What to set for it to have a secret: variables or files, by name."""
        named = [reference.partition(":")[2].removesuffix("?") for reference in self.references]
        return " or ".join(named) or f"HOOKONCE_SECRET__{self.name.upper()}"
