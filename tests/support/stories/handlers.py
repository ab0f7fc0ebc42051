"""The user's handlers: one works through an ORM session, one is `async def`, the others have the connection."""

import asyncio

from sqlalchemy import text

from hookonce import on, on_batch
from tests.support.stories.acting import effect, enter, note, story_of, suffer
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


def together(plan):
    """Takes batches. Who is beside others is charged with nothing, so he is written down when all went well."""

    def handle(events, tx):
        is_alone = len(events) == 1
        for event in events:
            story = enter(event, plan) if is_alone else story_of(event)
            tx.execute(EFFECT, effect(event, plan))
            suffer(event, story, tx)
        for event in events if not is_alone else ():
            note(event, plan.handler, counted=True)
        return [{"key": event.idempotency_key} for event in events]

    return handle


def register(plan):
    if plan.handler == "count":
        on_batch(plan.source, plan.pattern, name=plan.handler, attempts=plan.attempts, backoff=(0, 0))(
            together(plan)
        )
        return
    handle = {"mail": through_the_orm, "build": awaited}.get(plan.handler, plain)(plan)
    on(plan.source, plan.pattern, name=plan.handler, attempts=plan.attempts, backoff=(0, 0))(handle)


for each in PLANS:
    register(each)
