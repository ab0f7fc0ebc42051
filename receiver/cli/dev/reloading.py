"""Reloads after a file has changed under `hookonce dev`: handlers in the worker, all else in receiver and worker.

A configuration with a mistake changes nothing: the mistake is told, and what runs goes on as it was.
"""

import os
import threading
from pathlib import Path

from hookonce.receiver.cli.dev.introduction import introduce_source
from hookonce.receiver.cli.output.printing import say, tell
from hookonce.receiver.config import dotenv_file
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.servers import path_of
from hookonce.receiver.dev.file_watch import changes
from hookonce.receiver.dev.stack import RECEIVER, WORKER, Stack

_SHOWN = 3
"""Names of files in a line."""


def follow(running: Stack, ended: threading.Event, since: float) -> None:
    """Load what changes below the current directory after `since`, until `ended` is set; see `changes`."""
    root = Path.cwd()
    for paths in changes(root, {path_of(os.environ)}, ended, since):
        names = sorted(os.path.relpath(path, root) for path in paths)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        what = f"{', '.join(names[:_SHOWN])}{more}"
        if not any(_is_configuration(path, running) for path in paths):
            say(f"{'':<12}  {'changed':<9}  {what}")
            running.restart(WORKER)
            continue
        before = set(running.settings.sources)
        try:
            running.refresh()
        except ConfigError as error:
            say(f"{'':<12}  {'changed':<9}  {what}")
            tell(f"hookonce: {error.text}\n  what runs goes on as it was")
            continue
        say(f"{'':<12}  {'changed':<9}  {what}; receiver and worker start again, deliveries wait for them")
        running.restart(RECEIVER, WORKER)
        for name, source in running.settings.sources.items():
            if name not in before:
                introduce_source(running, source)


def _is_configuration(path: Path, running: Stack) -> bool:
    """Whether a file matters to the receiver, too: the configuration, and providers of the user's own."""
    if path in {path_of(os.environ).absolute(), dotenv_file.FILE.absolute()}:
        return True
    named = running.settings.provider_places
    places = [Path(each if "/" in each else each.replace(".", "/")).absolute() for each in named]
    return any(path == place or place in path.parents or path == place.with_suffix(".py") for place in places)
