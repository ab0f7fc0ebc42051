"""`/commands/<name>`, past Flask: a command is committed before it is answered, and answered alike ever after.

`POST /commands/<name>` asks for it, `GET /commands/<name>/<digest>` for its state. What it came to is in its run.
"""

import re
import time
from datetime import timedelta
from functools import partial

import psycopg

from hookonce.receiver.commands import answers, openapi, requests
from hookonce.receiver.commands.conduct import Conduct
from hookonce.receiver.commands.outcomes import Outcomes
from hookonce.receiver.commands.quotas import Quotas, limited_by
from hookonce.receiver.commands.requests import PREFIX, Asked, Refused
from hookonce.receiver.config.commands import Command
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.endpoints import policy
from hookonce.receiver.endpoints.policy import Policy
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.counted import Outcome as Met
from hookonce.receiver.idempotency.records import Result
from hookonce.receiver.intake.load import OverLimit
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger import handlers
from hookonce.receiver.ledger.commands import CommandState
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.stats.counters import Kind, Tally
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import Waits
from hookonce.receiver.web.body import MemoryBudget, Overloaded, Reservation
from hookonce.receiver.web.request import Request
from hookonce.receiver.web.response import Response, problem

log = limited(__name__)

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ACCEPTED = Policy()
"""What is told of a new command that is in progress, whatever its twins are told."""
_MODELS_TTL = timedelta(seconds=10)
"""For how long the models of commands are not looked up again."""
_MEMORY_BUDGET = 32 * 1024 * 1024
_LARGEST_BODY = 1024 * 1024  # that a command may allow


class CommandEndpoint:
    """Takes commands, which come under `PREFIX`."""

    def __init__(self, settings: Settings, intake: Intake) -> None:
        self._commands = settings.commands
        self._policies = {name: _policy(command) for name, command in settings.commands.items()}
        self._intake = intake
        self._budget = MemoryBudget(_MEMORY_BUDGET, _LARGEST_BODY)
        self._conduct = Conduct()
        self.outcomes = Outcomes(settings.database_url, settings.keyring)
        self._quotas = Quotas(intake.load, self.outcomes)
        self._url = settings.database_url
        self._known_models: openapi.Models = {}
        self._models_until = 0.0

    async def answer(self, request: Request, waits: Waits) -> Response:
        """Answer a request. Raises nothing."""
        try:
            with Reservation(self._budget, waits) as reservation:
                return await self._serve(request, waits, reservation)
        except Refused as refused:
            return answers.response(refused.result, close=refused.close)
        except Overloaded:
            return problem(503, "overloaded", close=True)
        except LedgerUnavailable as error:
            log.warning("ledger unavailable: %s", error)
            return answers.response(policy.unavailable(), close=True)
        except Exception as error:
            log.exception("a request failed: %s", type(error).__name__)
            return problem(500, "internal_error", close=True)

    async def _serve(self, request: Request, waits: Waits, reservation: Reservation) -> Response:
        path, method, headers = request.path[len(PREFIX) :], request.method, request.headers
        if path == "openapi.json" and method == "GET":
            asked_for = requests.clients_of(self._commands.values(), headers)
            return Response(200, openapi.document(asked_for, await waits.ask(self._models)))
        name, _, digest = path.partition("/")
        command = self._commands.get(name)
        if command is None or (digest and not _DIGEST.fullmatch(digest)):
            return problem(404, "unknown_command", close=True)
        allowed = "GET" if digest else "POST"
        if method != allowed:
            return problem(405, "bad_method", allow=allowed, close=True)
        client = requests.client_of(command, headers)
        if command.rate is not None:
            try:
                await waits.ask(self._intake.load.require, limited_by(command, client), command.rate)
            except OverLimit as error:
                raise Refused(answers.too_many(error.retry_after)) from None
        if digest:
            return await self._state(command, client, digest, waits)
        asked = await requests.read(command, client, request, reservation)
        wait = requests.wait_of(headers, self._policies[name].wait)
        return answers.response(await self._ask(command, client, asked, wait, waits))

    def _models(self) -> openapi.Models:
        """Return what workers said of their handlers; what was known before while the ledger is away."""
        if time.monotonic() > self._models_until:
            self._models_until = time.monotonic() + _MODELS_TTL.total_seconds()
            try:
                with connections.connect(self._url) as connection:
                    names = [command.source for command in self._commands.values()]
                    self._known_models = handlers.models_of(connection, names)
            except (psycopg.Error, LedgerUnavailable) as error:
                log.warning("the models of commands can't be looked up: %s", type(error).__name__)
        return self._known_models

    async def _ask(
        self, command: Command, client: str, asked: Asked, wait: timedelta, waits: Waits
    ) -> Result:
        """Store a command, and answer with what becomes of it."""
        if command.quota is None:
            [row] = await self._intake.commit_in([asked.event], waits)
        else:
            commit = partial(self._intake.commit, [asked.event])
            row = await waits.ask(self._quotas.store, command, client, asked, commit)
        whose, fingerprint = asked.whose, asked.event.fingerprint
        reach("delivery.answered")
        if row.verdict is Verdict.CONFLICT:
            self._conduct.reused(whose, asked.digest, fingerprint)
            self._count(command, Met.CONFLICT)
            return self._policies[command.name].reused()
        is_new = row.verdict is not Verdict.DUPLICATE
        if is_new:
            self._conduct.asked(whose, asked.digest, fingerprint)
            self._count(command, Met.CLAIMED)
        return await self._told(command, asked, wait, waits, is_new=is_new)

    async def _told(
        self, command: Command, asked: Asked, wait: timedelta, waits: Waits, *, is_new: bool
    ) -> Result:
        told = self._policies[command.name]
        location = f"{PREFIX}{command.name}/{asked.digest}"
        accepted = answers.located((_ACCEPTED if is_new else told).under_way(), location)
        if is_new and not wait:
            return accepted
        outcome = await self.outcomes.became((command.source, asked.digest), wait, waits)
        if outcome is not None and outcome.is_final:
            answer = answers.final(command, outcome)
            if is_new:
                return answer
            self._count(command, Met.REPLAYED)
            return policy.replayed(answer)
        failed = outcome is not None and outcome.state is CommandState.FAILED_RETRYABLE
        if not is_new:
            self._count(command, Met.FAILED_RETRYABLE if failed else Met.IN_PROGRESS)
        return answers.located(answers.failed_for_now(), location) if failed else accepted

    def _count(self, command: Command, met: Met) -> None:
        self._intake.background_writer.count(Tally(Kind.KEY, command.source, met))

    async def _state(self, command: Command, client: str, digest: str, waits: Waits) -> Response:
        outcome = await self.outcomes.became((command.source, digest), timedelta(0), waits)
        if outcome is None or outcome.account.partition("/")[0] != client:
            return problem(404, "unknown_command")
        return answers.response(answers.state(outcome))


def _policy(command: Command) -> Policy:
    return Policy.read(command.in_progress, command.dialect)
