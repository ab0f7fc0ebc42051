"""Exit codes, and how errors become them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from errno import EDQUOT, EFBIG, EIO, ENOSPC

import click


class Exit(IntEnum):
    """The codes that the shell gets."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    PARTIAL = 3
    NOT_FOUND = 4
    DATABASE_UNREACHABLE = 69
    LEDGER_LOCKED = 75
    BAD_CONFIGURATION = 78
    INTERRUPTED = 130


_DISK_FULL = {EDQUOT, EFBIG, EIO, ENOSPC}

BY_CLASS_NAME = {
    "ConfigError": Exit.BAD_CONFIGURATION,
    "SchemaBehind": Exit.BAD_CONFIGURATION,
    "HandlerError": Exit.BAD_CONFIGURATION,
    "EmbeddedError": Exit.FAILURE,
    "LedgerLocked": Exit.LEDGER_LOCKED,
    "LedgerUnavailable": Exit.DATABASE_UNREACHABLE,
    "InsufficientPrivilege": Exit.BAD_CONFIGURATION,
    "OperationalError": Exit.DATABASE_UNREACHABLE,
    "NotFound": Exit.NOT_FOUND,
    "NoProfile": Exit.NOT_FOUND,
    "BadAddress": Exit.USAGE,
    "RemoteError": Exit.FAILURE,
    "KeyMissing": Exit.BAD_CONFIGURATION,
    "Tampered": Exit.FAILURE,
    "Ambiguous": Exit.USAGE,
    "Conflict": Exit.FAILURE,
    "Contradictory": Exit.USAGE,
    "Forbidden": Exit.FAILURE,
    "Invalid": Exit.USAGE,
    "NotConfigured": Exit.BAD_CONFIGURATION,
    "Unauthorized": Exit.FAILURE,
    "Unavailable": Exit.BAD_CONFIGURATION,
}
"""By class name, because importing the classes would import what `--help` does not need."""


@contextmanager
def exits() -> Iterator[None]:
    """Turn known errors into a line on stderr and an exit code; let the rest show its traceback."""
    try:
        yield
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(Exit.INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        from hookonce.receiver.cli.output.printing import page  # few commands end so

        page(error.ctx.get_help() if error.ctx else error.message)
        sys.exit(Exit.OK)
    except click.ClickException as error:
        _tell(_of_click(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is not None:
            where = click.format_filename(error.filename)
            text = f"{where}: {error.strerror}; name another file, or check the directory's permissions"
        elif error.errno in _DISK_FULL:
            _discard_output()
            text = f"the output can't be written: {error.strerror}; make room, or write it elsewhere"
        else:
            raise
        _tell(text)
        sys.exit(Exit.FAILURE)
    except Exception as error:
        code = _code(error) or _code(getattr(error, "orig", None))  # what SQLAlchemy wraps
        if code is None:
            raise
        _tell(_text_of(error))
        sys.exit(code)


def _tell(text: str) -> None:
    """Print the one line that every error is, on stderr; a terminal folds it. It may name what a sender wrote."""
    from hookonce.receiver.cli.output.printing import folded  # only an error needs these
    from hookonce.receiver.cli.output.tables import clean

    lead = "hookonce:"
    text = clean(text, lines=True)
    line = folded(f"{lead} {text}") if sys.stderr.isatty() else f"{lead} {text}"
    said = click.style(lead, fg="red", bold=True) + line.removeprefix(lead)
    click.echo(said, err=True, color=False if os.environ.get("NO_COLOR") else None)


_OF_CLICK = {
    ". Did you mean": "; did you mean",
    ". (Did you mean one of:": "; did you mean",
    "?)": "?",
    ". Choose from:\n\t": "; choose from ",
    ",\n\t": ", ",
}


def _of_click(error: click.ClickException) -> str:
    """Return what click says of a command line, as we say things; and where to read on."""
    from hookonce.receiver.config.suggestions import read_on  # only an error needs it

    text = error.format_message().rstrip(".")
    for theirs, ours in _OF_CLICK.items():
        text = text.replace(theirs, ours)
    if isinstance(error, click.BadParameter) and error.param and isinstance(error.param.type, click.IntRange):
        text = text.replace(
            "is not a valid integer range", f"is not a whole number{_bounds(error.param.type)}"
        )
    is_word = text[:1].isupper() and not text[1:2].isupper()
    text = text[:1].lower() + text[1:] if is_word else text
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return text
    if text.startswith("no such command") and isinstance(context.command, click.Group):
        text = _of_unknown_command(text, context, context.command)
    if isinstance(error, click.NoSuchOption):
        text = _of_unknown_option(text, error.option_name, context)
    return read_on(text, f"`{context.command_path} --help` says more")


def _of_unknown_command(text: str, context: click.Context, group: click.Group) -> str:
    """Return click's refusal of a command that a group lacks, with the one that may be meant, or with all it has."""
    from hookonce.receiver.config.suggestions import did_you_mean  # only this mistake needs these
    from hookonce.receiver.desk.refusals import command_for

    refusal = text.partition("; did you mean")[0]
    word, names = refusal.split("'")[1], group.list_commands(context)
    root = context.find_root().command
    elsewhere = isinstance(root, click.Group) and word in root.list_commands(context)
    if command := command_for(word, context.command_path, names) or (elsewhere and f"hookonce {word}"):
        return f"{refusal}; use `{command}`"
    return refusal + did_you_mean(word, names, "there are")


def _of_unknown_option(text: str, option: str, context: click.Context) -> str:
    """Return click's refusal of an option that a command lacks, with the one that may be meant."""
    from hookonce.receiver.desk.refusals import option_for  # only this mistake needs it

    known = [name for each in context.command.params for name in each.opts]
    meant = option_for(option, known)
    return f"{text.partition('; did you mean')[0]}; use `{meant}`" if meant else text


def _bounds(kind: click.IntRange) -> str:
    """Return what a number must lie between."""
    least = "" if kind.min is None else f" from {kind.min}"
    return least if kind.max is None else f"{least} to {kind.max}"


def _code(error: BaseException | None) -> Exit | None:
    return next((BY_CLASS_NAME[k.__name__] for k in type(error).__mro__ if k.__name__ in BY_CLASS_NAME), None)


def _discard_output() -> None:
    """Discard what stdout still holds: Python would write it once more at its end, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _text_of(error: Exception) -> str:
    if mistakes := getattr(error, "text", None):  # of a ConfigError
        return str(mistakes)
    cause = getattr(error, "orig", None)
    if type(cause or error).__name__ == "InsufficientPrivilege":
        return (
            f"the role in DATABASE_URL lacks a right: {_first_line(cause or error)}; have the owner of the ledger "
            "give it what it needs, by `hookonce db roles`"
        )
    if cause:
        return f"PostgreSQL does not answer: {_text_of(cause)}"
    text = str(error).strip()
    return text if type(error).__name__ == "EmbeddedError" else _first_line(error)  # with the end of a log


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
