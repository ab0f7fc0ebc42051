"""The user's handlers in Django: all write through the ORM, two of them in blocks of their own."""

from django.db import models, transaction

from hookonce import on
from tests.support.stories.acting import effect, enter, suffer
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


class Given:
    """Django's connection, for what stories do to one of SQLAlchemy's."""

    def __init__(self, connection):
        self.connection = self
        self.driver_connection = connection.connection

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


for each in PLANS:
    make = in_blocks if each.handler in {"mail", "build"} else plain
    on(each.source, each.pattern, name=each.handler, attempts=each.attempts, backoff=(0, 0))(make(each))
