"""The user's handlers in Django: all write through the ORM, two of them in blocks of their own."""

import psycopg
from django.db import models, transaction
from psycopg.pq import ExecStatus

from hookonce import on, on_batch
from tests.support.stories.acting import effect, enter, note, story_of, suffer
from tests.support.stories.plans import PLANS


class Effect(models.Model):
    source = models.TextField()
    event_id = models.TextField(primary_key=True)
    handler = models.TextField()
    attempt = models.IntegerField()
    digest = models.TextField()

    class Meta:
        app_label = "hookonce"
        db_table = "effects"
        managed = False


class ByLibpq:
    """psycopg's connection, past all its cursors."""

    def __init__(self, driver):
        self._driver = driver
        self.rollback = driver.rollback

    def execute(self, statement):
        result = self._driver.pgconn.exec_(statement.encode())
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)


class Given:
    """Django's connection, for what stories do to one of SQLAlchemy's."""

    def __init__(self, connection):
        self.connection = self
        self.driver_connection = ByLibpq(connection.connection)

    def get_transaction(self):
        return self.driver_connection


def plain(plan):
    def handle(event, connection):
        story = enter(event, plan)
        Effect.objects.create(**effect(event, plan))
        suffer(event, story, Given(connection))
        return {"key": event.idempotency_key}

    return handle


def in_blocks(plan):
    """Keeps one block, and takes another back."""

    def handle(event, connection):
        story = enter(event, plan)
        for is_kept in (True, False):
            with transaction.atomic():
                Effect.objects.create(**effect(event, plan))
                transaction.set_rollback(not is_kept)
        suffer(event, story, Given(connection))
        return {"key": event.idempotency_key}

    return handle


def together(plan):
    """Takes batches, as the handler of that name does elsewhere."""

    def handle(events, connection):
        is_alone = len(events) == 1
        Effect.objects.bulk_create([Effect(**effect(event, plan)) for event in events])
        for event in events:
            story = enter(event, plan) if is_alone else story_of(event)
            suffer(event, story, Given(connection))
        for event in events if not is_alone else ():
            note(event, plan.handler, counted=True)
        return [{"key": event.idempotency_key} for event in events]

    return handle


for each in PLANS:
    make = {"mail": in_blocks, "build": in_blocks, "count": together}.get(each.handler, plain)
    register = on_batch if each.handler == "count" else on
    register(each.source, each.pattern, name=each.handler, attempts=each.attempts, backoff=(0, 0))(make(each))
