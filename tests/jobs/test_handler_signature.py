from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.engine import Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session, scoped_session

from hookonce.jobs.handler_signature import Signature, signature_of

if TYPE_CHECKING:
    from nowhere import Mystery
    from nowhere import orm as far


class OwnSession(Session):
    pass


def plain(event, tx):
    pass


def unused(_, __):
    pass


def anything(*_):
    pass


def annotated(event, tx: sa.Connection):
    pass


def whatever(event, tx: Any):
    pass


def unknown(event, tx: Mystery):
    pass


def session(event, session):
    pass


def session_by_class(event, db: Session):
    pass


def session_by_class_of_its_module(event, db: orm.Session):
    pass


def session_of_its_own(event, session: OwnSession):
    pass


def session_for_type_checkers_only(event, db: far.Session):
    pass


async def asynchronous(event, tx):
    pass


async def asynchronous_connection(event, tx: AsyncConnection):
    pass


async def asynchronous_session(event, session: AsyncSession):
    pass


class Callable:
    async def __call__(self, event, session):
        pass

    def method(self, event, session):
        pass


def of_the_driver(event, tx: psycopg.Connection):
    pass


def of_the_driver_for_type_checkers_only(event, tx: psycopg.Connection[dict]):
    pass


async def of_the_awaited_driver(event, tx: psycopg.AsyncConnection[dict]):
    pass


PLAIN, ORM = Signature(), Signature(takes_session=True)
ASYNC, ASYNC_ORM = Signature(is_async=True), Signature(is_async=True, takes_session=True)


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (plain, PLAIN),
        (unused, PLAIN),
        (anything, PLAIN),
        (annotated, PLAIN),
        (whatever, PLAIN),
        (unknown, PLAIN),
        (print, PLAIN),
        (session, ORM),
        (Callable().method, ORM),
        (session_by_class, Signature(takes_session=True, session_class=Session)),
        (session_by_class_of_its_module, Signature(takes_session=True, session_class=Session)),
        (session_of_its_own, Signature(takes_session=True, session_class=OwnSession)),
        (session_for_type_checkers_only, ORM),
        (asynchronous, ASYNC),
        (functools.partial(asynchronous), ASYNC),
        (asynchronous_connection, ASYNC),
        (asynchronous_session, Signature(is_async=True, takes_session=True, session_class=AsyncSession)),
        (Callable(), ASYNC_ORM),
        (of_the_driver, Signature(takes_driver=True)),
        (of_the_driver_for_type_checkers_only, Signature(takes_driver=True)),
        (of_the_awaited_driver, Signature(is_async=True, takes_driver=True)),
    ],
)
def test_signature_says_what_a_handler_gets(function, signature):
    assert signature_of(function) == signature


def swapped(tx, event):
    pass


def swapped_session(session, event):
    pass


def misnamed(event, db_session):
    pass


def contradictory(event, session: sa.Connection):
    pass


def engine(event, tx: Engine):
    pass


def registry(event, session: scoped_session):
    pass


def asynchronous_in_name_only(event, session: AsyncSession):
    pass


async def synchronous_connection(event, tx: sa.Connection):
    pass


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (swapped, "takes 'tx' first"),
        (swapped_session, "takes 'session' first"),
        (misnamed, "'db_session'; for an ORM session call it session, or annotate it Session"),
        (contradictory, "calls Connection 'session'"),
        (engine, "takes sqlalchemy.*Engine; annotate it Connection"),
        (registry, "takes sqlalchemy.*scoped_session; annotate it"),
        (asynchronous_in_name_only, "takes AsyncSession, but is a plain function, which gets Session"),
        (synchronous_connection, "takes Connection, but is an async def, which gets AsyncConnection"),
    ],
)
def test_signature_that_can_not_be_served_is_refused(function, error):
    with pytest.raises(ValueError, match=error):
        signature_of(function)
