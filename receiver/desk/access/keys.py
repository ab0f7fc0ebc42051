"""Keys that seal what is kept: how many rows need each, and a rotation to the first of them."""

from collections.abc import Iterator

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.maintenance import key_rotation
from hookonce.receiver.ledger.maintenance.key_rotation import Rotated
from hookonce.receiver.ledger.rows import Ours, ResponseModel

_NO_KEYS = (
    "no encryption_keys are configured; make one with `hookonce keys generate`, then name it in [receiver]"
)


class KeyUse(ResponseModel):
    """A key by its id, null for rows in the clear, and how many rows of each kind need it."""

    key: Ours | None
    use: Ours
    rows: dict[str, int]


class Keys(ResponseModel):
    """The configured keys, the first of which seals, and then others that rows need."""

    data: list[KeyUse]


@action(scope=Scope.ADMIN, changes=False)
def list_keys(desk: Desk) -> Keys:
    """List keys by id, and how many rows need each. It looks at every row, which takes a while."""
    used, keyring = key_rotation.used(desk.connection), desk.settings.keyring
    others = sorted({key or "" for counts in used.values() for key in counts} - {*keyring.ids})
    return Keys(
        data=[
            KeyUse(
                key=key or None,
                use=_use(keyring, key),
                rows={name: used[name].get(key or None, 0) for name in used},
            )
            for key in [*keyring.ids, *others]
        ]
    )


def rotation(desk: Desk) -> Iterator[Rotated]:
    """Seal with the first key all that is under another or in the clear; yield how far it is after each step.

    Raises: `ConfigError` without keys, `KeyMissing` where the first is not here.
    """
    if not desk.settings.keyring.is_on:
        raise ConfigError([_NO_KEYS])
    yield from key_rotation.rotate(desk.connection, desk.settings.keyring, desk.who)


def _use(keyring: Keyring, key: str) -> str:
    if not key:
        return "in the clear"
    if key == keyring.first:
        return "seals"
    return "opens" if key in keyring.ids else "not configured here"
