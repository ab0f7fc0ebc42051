"""The user's handlers: one works through an ORM session, one is `async def`, the others have the connection."""

import asyncio

from sqlalchemy import text

from hookonce import on
from tests.support.stories.acting import effect, enter, suffer
from tests.support.stories.plans import PLANS

EFFECT = text("INSERT INTO effects VALUES (:source, :event_id, :handler, :attempt, :digest)")


def plain(plan):
    def handle(event, tx):
        story = enter(event, plan)
        tx.execute(EFFECT, effect(event, plan))
        suffer(event, story, tx)
        return {"key": event.idempotency_key}

    return handle


def through_the_orm(plan):
    """Commits its effect, and takes back what it does after that; both its own session's business."""

    def handle(event, session):
        story = enter(event, plan)
        session.execute(EFFECT, effect(event, plan))
        session.commit()
        session.execute(EFFECT, effect(event, plan))
        session.rollback()
        suffer(event, story, session.connection())
        return {"key": event.idempotency_key}

    return handle


def awaited(plan):
    async def handle(event, tx):
        story = enter(event, plan)
        await tx.execute(EFFECT, effect(event, plan))
        await asyncio.sleep(0)
        await tx.run_sync(lambda connection: suffer(event, story, connection))
        return {"key": event.idempotency_key}

    return handle


def register(plan):
    handle = {"mail": through_the_orm, "build": awaited}.get(plan.handler, plain)(plan)
    on(plan.source, plan.pattern, name=plan.handler, attempts=plan.attempts, backoff=(0, 0))(handle)


for each in PLANS:
    register(each)
