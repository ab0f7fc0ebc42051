"""Rows of the ledger that are answers as they are, and their bounds, for pages and commands, which know no more."""

from hookonce.receiver.intake.explain.checks import Check
from hookonce.receiver.ledger.access.api_tokens import Scope, Token
from hookonce.receiver.ledger.access.audit_log import Change
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.handlers import HandlerLimits
from hookonce.receiver.ledger.maintenance.retention import Pruned
from hookonce.receiver.ledger.pauses import Pause
from hookonce.receiver.ledger.quarantine import Holding
from hookonce.receiver.ledger.queries.event_details import Run
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.queries.handler_stats import RUNS_LOOKED_AT
from hookonce.receiver.ledger.replay.bulk import BulkReplay
from hookonce.receiver.ledger.replay.events import GOOD, REPLAY_BATCH, DoneRun, ReplayOutcome, ReplayResult
from hookonce.receiver.ledger.results import AttemptLog, LogLine
from hookonce.receiver.ledger.runs.breakers import Breaker
from hookonce.receiver.ledger.stats.activity import Count
from hookonce.receiver.ledger.stats.backlog import MAX_COUNTED
from hookonce.receiver.ledger.stats.issues import MAX_LISTED, IssueState
from hookonce.receiver.ledger.stats.totals import StatusCount
from hookonce.receiver.ledger.steps import Step, StepStatus
from hookonce.receiver.ledger.traceback_frames import Frame, Raised, Traceback, calls
from hookonce.receiver.ledger.waits import Wait

__all__ = [
    "GOOD",
    "MAX_COUNTED",
    "MAX_LISTED",
    "REPLAY_BATCH",
    "RUNS_LOOKED_AT",
    "Alert",
    "AttemptLog",
    "Breaker",
    "BulkReplay",
    "Change",
    "Check",
    "Count",
    "DoneRun",
    "Event",
    "Frame",
    "HandlerLimits",
    "Holding",
    "IssueState",
    "LogLine",
    "Pause",
    "Pruned",
    "Raised",
    "ReplayOutcome",
    "ReplayResult",
    "Run",
    "Scope",
    "StatusCount",
    "Step",
    "StepStatus",
    "Token",
    "Traceback",
    "Wait",
    "calls",
]
