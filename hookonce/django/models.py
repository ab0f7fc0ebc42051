"""Events, runs and failed attempts as models that Django reads and never writes; the admin shows them.

The ledger's tables are made by hookonce's own migrations, so these models are unmanaged. They name the schema with the
table, which Django takes as it is where the name is quoted already.
"""

from typing import Any

from django.db import models

from hookonce.django.ledger import ledger_alias, table


class _OfTheLedger(models.Manager):  # type: ignore[misc]  # Django has no types
    """Asks the database that HOOKONCE_DATABASE names."""

    def get_queryset(self) -> Any:  # noqa: ANN401  Django's
        return super().get_queryset().using(ledger_alias())


class _ReadOnly(models.Model):  # type: ignore[misc]
    """A row of the ledger, which hookonce alone writes."""

    objects = _OfTheLedger()

    class Meta:
        abstract = True

    def save(self, *_: object, **__: object) -> None:
        raise TypeError("the ledger is hookonce's to write; `hookonce replay` and other commands change it")

    def delete(self, *_: object, **__: object) -> None:
        raise TypeError("the ledger is hookonce's to write; `hookonce prune` and other commands change it")


class Event(_ReadOnly):
    """An event as it came: its source, ids, type and times; nothing of its body."""

    id = models.BigIntegerField("number", primary_key=True)
    source = models.TextField()
    provider = models.TextField("sender")
    event_id = models.TextField("the sender's id")
    type = models.TextField()
    account = models.TextField(null=True)
    received_at = models.DateTimeField("received")
    occurred_at = models.DateTimeField("occurred", null=True)
    is_test = models.BooleanField("test event")

    class Meta:
        managed = False
        db_table = table("events")

    def __str__(self) -> str:
        return f"{self.source}:{self.event_id}"


class Run(_ReadOnly):
    """A handler's run for an event, in its last cycle. An event has several, so `event` is no key to one of them."""

    event = models.OneToOneField(
        Event, models.DO_NOTHING, db_column="event", primary_key=True, related_name="+"
    )
    handler = models.TextField()
    status = models.TextField()
    attempts = models.IntegerField()
    cycle = models.IntegerField()
    due_at = models.DateTimeField("due", null=True)
    waits = models.TextField("waits for", null=True)
    started_at = models.DateTimeField("started", null=True)
    finished_at = models.DateTimeField("finished", null=True)

    class Meta:
        managed = False
        db_table = table("run_states")

    def __str__(self) -> str:
        return f"{self.handler}: {self.status}"


class Failure(_ReadOnly):
    """An attempt that failed, with its error; the traceback, which may be sealed, is the console's to show."""

    id = models.BigIntegerField("number", primary_key=True)
    event = models.ForeignKey(Event, models.DO_NOTHING, db_column="event", related_name="+")
    handler = models.TextField()
    cycle = models.IntegerField()
    attempt = models.IntegerField()
    failed_at = models.DateTimeField("failed")
    error = models.TextField()

    class Meta:
        managed = False
        db_table = table("failures")

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.handler}"


class EventState(_ReadOnly):
    """The status of an event, by a view that is asked for the events of a page only."""

    id = models.BigIntegerField(primary_key=True)
    status = models.TextField()
    deliveries = models.BigIntegerField()

    class Meta:
        managed = False
        db_table = table("event_states")
        default_permissions = ()


class OpenRun(_ReadOnly):
    """A run that is open; of an event that no worker has met, the run without a handler."""

    event = models.BigIntegerField(primary_key=True)

    class Meta:
        managed = False
        db_table = table("queue")
        default_permissions = ()


class Outcome(_ReadOnly):
    """The outcome of a run, in each of its cycles."""

    event = models.BigIntegerField(primary_key=True)
    status = models.TextField()
    is_last = models.BooleanField()

    class Meta:
        managed = False
        db_table = table("runs")
        default_permissions = ()
