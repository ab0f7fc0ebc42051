"""`.env` in the current directory: variables for every command, so that no terminal needs exports.

The real environment wins. A process that is started by another of ours inherits what came from the file and would
take it for the real environment; `HOOKONCE_DOTENV` names those variables, so that it reads them afresh.
"""

import os
from collections.abc import MutableMapping
from pathlib import Path

from dotenv.parser import parse_stream

from hookonce.receiver.config.mistakes import ConfigError

FILE = Path(".env")
INHERITED = "HOOKONCE_DOTENV"


def load(environ: MutableMapping[str, str] | None = None) -> None:
    """Put what the file says into the environment, in the place of what it said before.

    Nothing is expanded: a `$` in a secret is a `$`. Raises: `ConfigError`, and nothing has changed.
    """
    environ = os.environ if environ is None else environ
    said = _read()
    for name in environ.get(INHERITED, "").split():
        environ.pop(name, None)
    ours = {name: value for name, value in said.items() if name not in environ and name != INHERITED}
    environ.update(ours)
    environ[INHERITED] = " ".join(ours)
    if not ours:
        del environ[INHERITED]


def _read() -> dict[str, str]:
    try:
        with FILE.open(encoding="utf-8") as file:
            lines = list(parse_stream(file))
    except FileNotFoundError:
        return {}
    except IsADirectoryError:  # a virtual environment, of old
        return {}
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError([f"{FILE} can't be read: {why}; fix it, or its permissions"]) from None
    wrong = [each.original.line for each in lines if each.error]
    if wrong:
        raise ConfigError([f"{FILE}:{line} is not understood; expected NAME=value" for line in wrong])
    return {each.key: each.value for each in lines if each.key is not None and each.value is not None}
