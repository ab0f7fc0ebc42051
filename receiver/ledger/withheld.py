"""Rows with content, which is withheld by default: a row that is read from the ledger has what anybody may see.

Content is what a delivery, an error, a result or a log line may quote. Fields that hold some are marked by `Content`,
and their values are set aside when the row is made. `with_content` alone brings them back: it is called by
`receiver.desk.content`, which asks the permission, and by readers that have no caller.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, Self

from pydantic import PrivateAttr

from hookonce.receiver.ledger.rows import ResponseModel

WITHHELD: Final = "it is content, which the scope `bodies` shows"
"""Why something is `unreadable` that is withheld."""
AS_SHOWN: Final = "as shown"
"""The context for the validation of an answer: its rows have what their reader may see already."""
_PLACE: Final = re.compile(r" \([^()\s]+\.pyx?:\d+\)\Z")


def brief(error: str) -> str:
    """Return the class of an error, and where it was raised, without what it says."""
    place, name = _PLACE.search(error), class_of(error)
    return name if place is None or place[0] in name else name + place[0]


def class_of(error: str) -> str:
    """Return the class of an error, which its text begins with."""
    return re.split(r":\s|\n", error, maxsplit=1)[0]


def without_error(wanted: Mapping[str, object]) -> dict[str, object]:
    """Return a filter of events as it is kept, without what errors were to say."""
    return {**wanted, "error": WITHHELD} if "error" in wanted else dict(wanted)


class Content(NamedTuple):
    """The mark of a field that holds content; `public` makes of its value what anybody may see."""

    public: Callable[[Any], object]


NULL: Final = Content(lambda _: None)
EMPTY: Final = Content(lambda value: type(value)())
ErrorText = Annotated[str | None, Content(brief)]


@dataclass(frozen=True, slots=True)
class _Aside:
    """The content of a row by field; printed, compared and pickled as nothing."""

    values: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


class ContentRow(ResponseModel):
    """A row with content, which is set aside unless it is read from an answer (`AS_SHOWN`).

    Where a marked value leaves nothing that is public, `unreadable` says why.
    """

    _aside: _Aside = PrivateAttr(default=_Aside())

    def with_content(self) -> Self:
        """Return the row with its content, and with that of the rows in it."""
        rows = {
            name: [each.with_content() for each in value]
            for name, value in self
            if isinstance(value, list) and value and isinstance(value[0], ContentRow)
        }
        whole = self.model_copy(update=rows | dict(self._aside.values))
        whole._aside = _Aside()  # noqa: SLF001  else what is redacted in it would come back
        return whole

    def _public(self) -> dict[str, object]:
        """Return the fields whose values are content, with what is public of them."""
        public = {
            name: shown
            for name, mark in _marks(type(self)).items()
            if (value := getattr(self, name)) is not None and (shown := mark.public(value)) != value
        }
        if "unreadable" in type(self).model_fields and not all(public.values()):
            public["unreadable"] = WITHHELD
        return public

    def model_post_init(self, context: object, /) -> None:
        """Set the content aside."""
        if context != AS_SHOWN:
            public = self._public()
            self._aside = _Aside({name: getattr(self, name) for name in public})
            for name, value in public.items():
                setattr(self, name, value)


@cache
def _marks(shape: type[ContentRow]) -> Mapping[str, Content]:
    fields = shape.model_fields.items()
    return {name: mark for name, each in fields for mark in each.metadata if isinstance(mark, Content)}
