"""Headers that are lists: several signatures one after the other, or `key=value` pairs."""

from typing import Final

from hookonce.providers import Reason, Rejected
from hookonce.providers.kit.signing.verdict import MAX_SIGNATURES

_PAIRS: Final = 4 * MAX_SIGNATURES
"""As many pairs as are looked at: each signature may come with a few others."""


def items(value: str, separator: str) -> list[str]:
    """Return the items of a header; the header itself if there is no separator."""
    if not separator:
        return [value]
    return [item.strip(" ") for item in value.split(separator, MAX_SIGNATURES)]


def pairs(value: str, separator: str, key: str, time_key: str) -> tuple[list[str], list[str]]:
    """Return what stands under `key`, and under `time_key`, in a header such as `t=1,v1=abc`.

    A value may stand in quotes, and a scheme's name before the first pair: `Signature keyId="k1",signature="abc"`.
    """
    texts, stamps = [], []
    for item in value.split(separator, _PAIRS)[:_PAIRS]:
        name, _, text = item.strip(" ").partition("=")
        name, text = name.rpartition(" ")[2], unquoted(text)
        if name == key:
            texts.append(text)
        elif name == time_key:
            stamps.append(text)
    return texts, stamps


def unquoted(text: str) -> str:
    """Return a value without the quotes that it stands in, if it does."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def only(name: str, key: str, stamps: list[str]) -> str:
    """Return the one value under `key` of header `name`. Raises: Rejected(bad_header) for none or several."""
    if len(stamps) != 1:
        raise Rejected(Reason.BAD_HEADER, f"header {name} needs one {key}=, it has {len(stamps)}")
    return stamps[0]
