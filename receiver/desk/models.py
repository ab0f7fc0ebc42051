"""Parts of the desk's models: the types of their fields, and how strictly they are read."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails

from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.desk.refusals import Contradictory, not_one_of
from hookonce.receiver.durations import no_time, parse_time
from hookonce.receiver.ledger import rows
from hookonce.receiver.ledger.rows import ISSUE_PATTERN, MAX_ID, Identifier, Ours, ResponseModel, as_text

__all__ = ["MAX_ID", "Identifier", "Ours", "ResponseModel", "as_text"]
"""Those of answers, for pages and commands; what is defined here is imported by its name."""
PAGE_SIZE = 200
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = rf"{_DAY}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,9}})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})"
_CLOCKS_DIFFER = timedelta(minutes=1)
_AGO = "[0-9]{1,4}[smhdw]|today|yesterday"
_TEXT = r"^[^\x00-\x1f\x7f]+$"
_NAME = "^[a-z0-9][a-z0-9_-]{0,62}$"


class RequestModel(BaseModel):
    """A request of a client; a field that is not named is refused."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, strict=True)

    def require_span(self) -> None:
        """Refuse a span of time that holds nothing. Raises: `Contradictory`."""
        since: datetime | None = getattr(self, "since", None)
        until: datetime | None = getattr(self, "until", None)
        if since and since > datetime.now(UTC) + _CLOCKS_DIFFER:
            raise Contradictory(f"since is in the future ({since.isoformat()}); expected a time before now")
        if since and until and until <= since:
            raise Contradictory(
                "until must be later than since: since 2h, until 1h is the hour that ended an hour ago"
            )


Row = TypeVar("Row", bound=ResponseModel)


def _number(value: object) -> object:
    """Read a number of a path or query, where everything is text."""
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise ValueError("expected a whole number")
        return int(value)
    return value


def _whole(value: object) -> object:
    """Read a number of a JSON body: 2.0 is the integer 2, `true` and "2" are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a whole number")  # noqa: TRY004  pydantic's way to refuse
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _named(value: object) -> object:
    """Read what an event is called; in a JSON body its ledger id may be a number."""
    if value == "":
        raise ValueError("expected a ledger id, source:event_id, or how a sender's id begins")
    if isinstance(value, float) and value.is_integer():  # 2.0 is the integer 2
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if not 0 < value <= MAX_ID:
        raise ValueError(f"expected a ledger id, from 1 to {MAX_ID}")
    return str(value)


def _issue(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(ISSUE_PATTERN, value):
        raise ValueError("expected the 12 hex digits of an issue, as `hookonce issues list` shows them")
    return value


def _read_time(value: object) -> object:
    if isinstance(value, datetime):
        return value
    text = value.upper() if isinstance(value, str) else ""
    text += "T00:00:00Z" if re.fullmatch(_DAY, text) else ""
    if re.fullmatch(_TIME, text) or re.fullmatch(_AGO, text.lower()):
        with suppress(ValueError):
            whole = text.replace(":60", ":59", 1) if text[16:19] == ":60" else text
            return parse_time(whole, datetime.now(UTC))
    raise ValueError(no_time(str(value)[:_LONGEST_ECHO]))


def _flag(value: object) -> object:
    """Read a yes or no of a query, where everything is text."""
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


Flag = Annotated[bool, BeforeValidator(_flag)]
IdInPath = Annotated[Identifier, BeforeValidator(_number)]
IdInBody = Annotated[Identifier, BeforeValidator(_whole)]
Limit = Annotated[int, Field(ge=1, le=PAGE_SIZE), BeforeValidator(_number)]
Time = Annotated[
    datetime,
    BeforeValidator(_read_time),
    WithJsonSchema(
        {
            "type": "string",
            "anyOf": [
                {"format": "date-time"},
                {"format": "date"},
                {"pattern": f"^({_AGO})$"},
            ],
            "examples": ["2026-01-31T14:00:00Z", "2h"],
        }
    ),
]
"""A point in time as it is asked for: absolute, a day of UTC, or so long ago."""
Name = Annotated[str, Field(pattern=_NAME)]
"""The name of a source or a provider."""
Text = Annotated[str, Field(pattern=_TEXT, max_length=255)]
IssueId = Annotated[rows.IssueId, BeforeValidator(_issue)]
"""An issue, as `/issues` gives it."""


Reference = Annotated[
    str,
    BeforeValidator(_named),
    Field(min_length=1, max_length=255),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_ID},
                {"type": "string", "minLength": 1, "maxLength": 255},
            ]
        }
    ),
]
"""An event as people name it; a number is a ledger id and nothing else."""


def _cursor(value: object) -> object:
    """Read a cursor; a number is one that we make."""
    if isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch("[0-7][0-9a-f]{15}", value):
        return int(value, 16)
    raise ValueError("expected `next` of the page before, unchanged")


Cursor = Annotated[
    int,
    BeforeValidator(_cursor),
    PlainSerializer(lambda number: f"{number:016x}", return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-7][0-9a-f]{15}$"}),
]
"""The end of a page: the id of its last row, to clients a text without a meaning."""


class Paged(RequestModel):
    """The part of a query that every listing has."""

    limit: Limit = Field(50, description="how many rows at most")
    cursor: Cursor | None = Field(None, description="`next` of the page before")


class Listed(ResponseModel, Generic[Row]):
    """All rows of a kind."""

    called: ClassVar = "A list"
    data: list[Row]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Describe a listing by its rows, unless it is described."""
        (row,) = get_args(cls.model_fields["data"].annotation)
        if cls.__doc__ is None and row.__doc__:
            line = row.__doc__.partition("\n")[0]
            cls.__doc__ = f"{cls.called}. Each row is {line[0].lower()}{line[1:]}"

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name in the API's document: `Listed[Token]` is called `Tokens`."""
        return f"{params[0].__name__.removesuffix('Model')}s"


class Page(Listed[Row], Generic[Row]):
    """One page of a listing, newest first; `next` is the cursor of the page after, null on the last one."""

    called: ClassVar = "A page of a listing, newest first"
    next: Cursor | None

    @classmethod
    def of(cls, rows: Sequence[object], asked: Paged, **more: object) -> Self:
        """Show rows of the ledger, or what was made of them, each with an `id`; as many as were asked for have more."""
        page = cls.model_validate({"data": rows, "next": None, **more}, from_attributes=True)
        if len(rows) == asked.limit:
            page.next = getattr(page.data[-1], "id")  # noqa: B009  every row that is listed by pages has one
        return page

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name in the API's document: `Page[Alert]` is called `AlertPage`."""
        return f"{params[0].__name__}Page"


Place = tuple[int | str, ...]
_LONGEST_ECHO = 60
_LONGEST_PLACE = 300
_WORDS = {
    "Value error, ": "",
    "Input should be greater than or equal to ": "expected at least ",
    "Input should be less than or equal to ": "expected at most ",
    "Input should be greater than ": "expected more than ",
    "Input should be ": "expected ",
    f"String should match pattern '{_NAME}'": "expected a name of a-z, 0-9, _ and -",
    f"String should match pattern '{_TEXT}'": "expected some text without control characters",
    "String should match pattern ": "expected a text that matches ",
    "String should have ": "expected ",
    "List should have ": "expected ",
    "Field required": "it is required",
    "Extra inputs are not permitted": "no field has this name",
}


def mistakes(error: ValidationError, model: type[RequestModel]) -> list[tuple[Place, str]]:
    """Return the mistakes of a request: where, and what was expected; of what was typed, names and times alone."""
    return [(each["loc"], _as_we_say(each, model)) for each in error.errors(include_url=False)]


def said_of(found: Iterable[tuple[Place, str]]) -> str:
    """Return mistakes in one line; a client's names may be long, and hold lone surrogates."""
    said = [(".".join(map(str, place))[:_LONGEST_PLACE], text) for place, text in found]
    line = "; ".join(f"{place}: {text}" if place else text for place, text in said)
    return line.encode(errors="backslashreplace").decode()


def _as_we_say(mistake: ErrorDetails, model: type[RequestModel]) -> str:
    """Return a mistake that pydantic found in the words of other mistakes."""
    text, given = mistake["msg"], mistake["input"]
    if (
        mistake["type"] in {"literal_error", "enum"}
        and isinstance(given, str)
        and len(given) <= _LONGEST_ECHO
    ):
        return not_one_of(given, re.findall("'([^']+)'", mistake["ctx"]["expected"]))
    if mistake["type"] == "extra_forbidden" and len(mistake["loc"]) == 1:
        return _WORDS[text] + did_you_mean(str(mistake["loc"][0]), model.model_fields)
    for theirs, ours in _WORDS.items():
        if text.startswith(theirs):
            return ours + text[len(theirs) :]
    return text
