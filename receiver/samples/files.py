"""The samples as they are kept: one file for each provider, one entry for each type.

    {"user.created": {"id": "msg_2b7…", "fresh": ["user_29w…"], "json": {"data": {"id": "user_29w…"}}}}

`json`, `form` or `text` is the body; a field of a form that is no text is JSON. `id` is the event's id: where that text
stands in the body, another one is put in its place each time, and it is passed on to the sender's headers. `fresh` are
other values that are new each time. `headers` come with what the sender signs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: `form` is `json`, `form` or `text`, and `body` what such a body is made of."""

    type: str
    form: str
    body: Any
    id: str | int | None = None
    fresh: tuple[str | int, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def types(provider: str) -> list[str]:
    """List the types that a provider has samples of, the usual one first; empty if there are none."""
    return list(_samples(provider))


def sample(provider: str, type: str | None) -> Sample | None:  # noqa: A002  the word of the vocabulary
    """Return the sample of a type, None for the usual one; None if the provider has no samples at all.

    Raises: LookupError, with the nearest type, if it has some and none of this type.
    """
    known = _samples(provider)
    if not known:
        return None
    chosen = next(iter(known)) if type is None else type
    if chosen not in known:
        raise LookupError(_no_sample(provider, chosen, list(known)))
    return known[chosen]


@cache
def _samples(provider: str) -> Mapping[str, Sample]:
    """Find a provider's file by comparing names, never joining them: none can leave the package."""
    wanted = provider.replace("-", "_").lower() + ".json"
    for file in (files(__package__) / "bodies").iterdir():
        if file.name == wanted:
            said = json.loads(file.read_text(encoding="utf-8"))
            return {kind: _sample(kind, entry) for kind, entry in said.items()}
    return {}


def _sample(kind: str, said: Mapping[str, Any]) -> Sample:
    (form,) = {"json", "form", "text"} & said.keys()
    return Sample(
        type=kind,
        form=form,
        body=said[form],
        id=said.get("id"),
        fresh=tuple(said.get("fresh", ())),
        headers=said.get("headers", {}),
    )


def _no_sample(provider: str, wanted: str, known: list[str]) -> str:
    lower = {name.lower(): name for name in known}
    near = get_close_matches(wanted.lower(), lower, n=1) or [
        name for name in lower if wanted.lower() in name or name in wanted.lower()
    ]
    hint = f"did you mean {lower[near[0]]!r}? " if wanted and near else ""
    return f"no sample {wanted!r} for {provider}; {hint}`hookonce trigger --list` shows all"
