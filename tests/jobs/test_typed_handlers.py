import pytest

from tests.support.type_checker import mypy

GOOD = """
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from hookonce import ReceivedEvent, on


class Own(Session):
    pass


@on("stripe", "a", isolation="serializable", attempts=3)
def plain(event: ReceivedEvent, tx: Connection) -> dict[str, bool]:
    return {"ok": True}


@on("stripe", "a", attempts=3)
def orm(event: ReceivedEvent, session: Session) -> None: ...


@on("stripe", "a")
def own(event: ReceivedEvent, session: Own) -> None: ...


@on("stripe", "a")
async def awaited(event: ReceivedEvent, tx: AsyncConnection) -> None: ...


@on("stripe", "a")
async def awaited_orm(event: ReceivedEvent, session: AsyncSession) -> None: ...
"""
BAD = """
from hookonce import ReceivedEvent, on


@on("stripe", "a")
def one(event: ReceivedEvent) -> None: ...


@on("stripe", "a")
def other(event: int, tx: object) -> None: ...
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What mypy finds in modules of handlers."""
    folder = tmp_path_factory.mktemp("handlers")
    (folder / "good.py").write_text(GOOD)
    (folder / "bad.py").write_text(BAD)
    _, said = mypy(folder, "good.py", "bad.py")
    return [line for line in said if ": error:" in line]


def test_handlers_of_every_kind_pass_mypy_strict(found):
    assert [line for line in found if line.startswith("good.py")] == []


def test_handler_that_takes_something_else_is_found_by_mypy(found):
    wrong = [line.partition("cannot be ")[2] for line in found if line.startswith("bad.py")]

    assert [line.partition('"')[2].partition(" ")[0] for line in wrong] == [
        "Callable[[ReceivedEvent],",
        "Callable[[int,",
    ]
