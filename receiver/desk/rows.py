"""Rows of the ledger that are answers as they are, for those who show them and know no more of the ledger."""

from hookonce.receiver.intake.explain.checks import Check
from hookonce.receiver.ledger.access.audit_log import Change
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.handlers import HandlerLimits
from hookonce.receiver.ledger.pauses import Pause
from hookonce.receiver.ledger.quarantine import Holding
from hookonce.receiver.ledger.queries.event_details import Run
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.replay.events import GOOD, DoneRun, ReplayOutcome, ReplayResult
from hookonce.receiver.ledger.results import AttemptLog, LogLine
from hookonce.receiver.ledger.runs.breakers import Breaker
from hookonce.receiver.ledger.steps import Step, StepStatus
from hookonce.receiver.ledger.traceback_frames import Frame, Raised, Traceback, calls

__all__ = [
    "GOOD",
    "Alert",
    "AttemptLog",
    "Breaker",
    "Change",
    "Check",
    "DoneRun",
    "Event",
    "Frame",
    "HandlerLimits",
    "Holding",
    "LogLine",
    "Pause",
    "Raised",
    "ReplayOutcome",
    "ReplayResult",
    "Run",
    "Step",
    "StepStatus",
    "Traceback",
    "calls",
]
