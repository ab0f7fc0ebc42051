"""Files that are written once, and never over what is there."""

import os
from pathlib import Path

from hookonce.receiver.cli.output.printing import tell


def write_new(path: Path, text: str, mode: int = 0o666) -> bool:
    """Write a file, unless it is there, and say which of the two; return whether it was not there."""
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8"
        ) as file:
            file.write(text)
    except FileExistsError:
        tell(f"{path} is there and was left as it is")
        return False
    tell(f"wrote {path}")
    return True
