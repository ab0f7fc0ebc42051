"""Secrets by reference: `env:NAME`, `file:/path`, each with `?` at its end where it may be absent."""

from collections.abc import Mapping
from pathlib import Path


def resolve(reference: str, environ: Mapping[str, str]) -> str:
    """Give the text that a reference names, stripped; '' for an absent one that may be absent.

    Raises: ValueError saying what is missing or wrong; never what a secret is.
    """
    kind, _, rest = reference.partition(":")
    name = rest.removesuffix("?")
    if kind not in {"env", "file"} or not name:
        raise ValueError('a secret is given by reference; write "env:NAME" or "file:/path" instead')
    found = environ.get(name, "").strip() if kind == "env" else _read(Path(name))
    if not found and not rest.endswith("?"):
        raise ValueError(f"{name} is not set" if kind == "env" else f"{name} is missing or empty")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read: {type(error).__name__}") from None
