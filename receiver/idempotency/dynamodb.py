"""Records in a table of DynamoDB, for who runs nothing else: what was confirmed is not lost.

    key (S, the table's hash key)   SHA-256 of scope and key, hex
    fingerprint (B)  state, owner (S)  attempt (N)  is_uncertain (BOOL)
    lease_until, expires_at (N)     seconds since 1970
    ttl (N)                         whole seconds: name it as the table's TTL attribute, so that old items go
    status (N)  headers (S)  body (B)   of what has ended

A claim is a put on the condition that no item is there, or that it has expired; whoever loses that race reads the
item consistently, and takes over what is free with a second put on the condition that nobody did so meanwhile. DynamoDB
deletes by TTL days late: an item that has expired counts as gone, whether it is there or not.

Its conditions know no clock. So the time is that of the service too: of the `Date` of its last answer, which is a
second coarse, and of the monotonic clock since. Leases are taken to begin late and to end early by that second.
A machine whose clock is wrong takes over nothing. All regions of a global table are not one: use one region's.
"""

import json
import time
from collections.abc import Mapping
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from uuid import UUID

from hookonce.receiver.idempotency.records import (
    Claim,
    Key,
    LeaseLost,
    Record,
    Result,
    State,
    StoreUnavailable,
    Verdict,
    verdict,
)

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
except ImportError:
    raise ImportError("DynamoDB needs boto3: pip install 'hookonce[dynamodb]'") from None

MAX_RESULT = 350 * 1024
"""An item has 400 KB."""
TIMEOUT = timedelta(seconds=2)
FRESH = timedelta(minutes=1)
"""How long the service's time is gone by without asking again."""
TTL_MARGIN = 3600
_COARSE = 1.0
"""Seconds that a `Date` may be behind."""
_LOST_RACE = "ConditionalCheckFailedException"
_IS_MINE = "#owner = :owner AND #state = :in_progress"
_NAMES = {"#owner": "owner", "#state": "state"}

_ALREADY_THERE = "ResourceInUseException"
_NOT_THERE = "ResourceNotFoundException"
_TTL = "ttl"
_TTL_IS_SET = (_ALREADY_THERE, "ValidationException")
"""Codes of DynamoDB's errors for a TTL that is enabled already, or is being so; other mistakes have them too."""
_KEY_ATTRIBUTE = {"AttributeName": "key", "AttributeType": "S"}
_KEY_SCHEMA = [{"AttributeName": "key", "KeyType": "HASH"}]
READY_WITHIN = timedelta(minutes=5)
_LOOK = 0.5
"""Seconds between two looks at a new table."""

Item = dict[str, dict[str, Any]]


class _Sample(NamedTuple):
    """The service's clock, in seconds since 1970, and our monotonic clock before and after the question."""

    date: float
    asked: float
    answered: float


class DynamoStore:
    """Records in one table of one region. The client may be shared between threads."""

    loses = ""
    max_result = MAX_RESULT

    def __init__(self, client: Any, table: str) -> None:  # noqa: ANN401  boto3 has no types
        self.client = client
        self._table = table
        self._sample: _Sample | None = None

    @classmethod
    def at(cls, table: str, **options: Any) -> "DynamoStore":  # noqa: ANN401  boto3's own options
        """Return the store in a table; `options` are those of `boto3.client`, which else finds them as it does."""
        seconds = TIMEOUT.total_seconds()
        config = Config(connect_timeout=seconds, read_timeout=seconds, retries={"total_max_attempts": 2})
        return cls(boto3.client("dynamodb", **{"config": config} | options), table)

    def create_table(self) -> None:
        """Make the table, paid by request, with its TTL attribute; one that is there as it must be, is used.

        So it can be called again, and a request that boto3 sends twice does no harm. For tests and small beginnings.
        Raises: `StoreUnavailable`, also for a table of that name with other keys or another TTL attribute.
        """
        try:
            self._ask(
                "create_table",
                TableName=self._table,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[_KEY_ATTRIBUTE],
                KeySchema=_KEY_SCHEMA,
            )
        except StoreUnavailable as error:
            if _code(error) != _ALREADY_THERE:
                raise
        self._wait_until_ready()
        specification = {"Enabled": True, "AttributeName": _TTL}
        try:
            self._ask("update_time_to_live", TableName=self._table, TimeToLiveSpecification=specification)
        except StoreUnavailable as error:
            if _code(error) not in _TTL_IS_SET:
                raise
            self._require_our_ttl(error)

    def _wait_until_ready(self) -> None:
        """Wait for the table, which may not be found in the moment after it was made. Raises if it is not ours."""
        until = time.monotonic() + READY_WITHIN.total_seconds()
        while True:
            try:
                table = self._ask("describe_table", TableName=self._table)["Table"]
            except StoreUnavailable as error:
                if _code(error) != _NOT_THERE:
                    raise
            else:
                self._require_our_keys(table)
                if table["TableStatus"] in {"ACTIVE", "UPDATING"}:
                    return
                if table["TableStatus"] == "DELETING":
                    raise StoreUnavailable(
                        f"the table {self._table} is being deleted; create it when it has gone"
                    )
            if time.monotonic() > until:
                raise StoreUnavailable(f"the table {self._table} was made and is not ready in {READY_WITHIN}")
            time.sleep(_LOOK)

    def _require_our_keys(self, table: Mapping[str, Any]) -> None:
        types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
        keys = [(each["AttributeName"], each["KeyType"]) for each in table["KeySchema"]]
        found = [f"{name} ({types[name]}, {role})" for name, role in keys]
        expected = f"{_KEY_ATTRIBUTE['AttributeName']} ({_KEY_ATTRIBUTE['AttributeType']}, HASH)"
        if found != [expected]:
            raise StoreUnavailable(
                f"the table {self._table} exists and has the key {', '.join(found)}; expected {expected} alone; "
                "name another table, or delete this one"
            )

    def _require_our_ttl(self, refused: StoreUnavailable) -> None:
        said = self._ask("describe_time_to_live", TableName=self._table)["TimeToLiveDescription"]
        status, attribute = said["TimeToLiveStatus"], said.get("AttributeName")
        if status not in {"ENABLED", "ENABLING"}:
            raise refused
        if attribute != _TTL:
            raise StoreUnavailable(
                f"the table {self._table} has the TTL attribute {attribute}; expected {_TTL}; name another table, or "
                "change it"
            )

    def claim(self, wanted: Claim) -> Claim | Record | None:
        """Claim a key; see `Store`."""
        now = self._now(wanted.key)
        fresh = "attribute_not_exists(#key) OR expires_at <= :now"
        if self._put(wanted, fresh, {":now": _number(now)}, {"#key": "key"}):
            return wanted
        found = self.find(wanted.key)
        decided = verdict(found, wanted.fingerprint)
        if (
            found is not None
            and decided in {Verdict.TAKE_OVER, Verdict.RETRY}
            and found.owner != wanted.owner
        ):
            is_uncertain = found.is_uncertain or decided is Verdict.TAKE_OVER
            granted = _granted(wanted, found.attempt + 1, is_uncertain=is_uncertain)
            unchanged = {":seen": _text(found.owner), ":state": _text(found.state)}
            if self._put(granted, "#owner = :seen AND #state = :state", unchanged, _NAMES):
                return granted
            found = self.find(wanted.key)
        if found is None or found.is_expired:
            return None
        if found.owner == wanted.owner and found.state == State.IN_PROGRESS:  # boto3 asked twice
            return _granted(wanted, found.attempt, is_uncertain=found.is_uncertain)
        return found

    def complete(self, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim; see `Store`."""
        ends = self._now(claim.key, latest=True) + claim.terms.retention.total_seconds()
        values: Item = {
            ":owner": _text(claim.owner),
            ":in_progress": _text(State.IN_PROGRESS),
            ":state": _text(state),
            ":ends": _number(ends),
            ":ttl": _number(int(ends) + TTL_MARGIN),
        }
        update = "SET #state = :state, expires_at = :ends, #ttl = :ttl"
        for name, value in _spelled(result).items():
            update += f", #{name} = :{name}"
            values[f":{name}"] = value
        names = _NAMES | {"#ttl": "ttl"} | {f"#{name}": name for name in _spelled(result)}
        if self._wins(
            "update_item",
            Key={"key": _text(claim.key.digest)},
            UpdateExpression=update,
            ConditionExpression=_IS_MINE,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        ):
            return
        found = self.find(claim.key)
        if found is None or (found.owner, found.state) != (claim.owner, state):
            raise LeaseLost(f"the claim on {claim.key.digest[:12]} was taken over or has expired")

    def release(self, claim: Claim) -> None:
        """Forget a claim; see `Store`."""
        self._wins(
            "delete_item",
            Key={"key": _text(claim.key.digest)},
            ConditionExpression=_IS_MINE,
            ExpressionAttributeNames=_NAMES,
            ExpressionAttributeValues={
                ":owner": _text(claim.owner),
                ":in_progress": _text(State.IN_PROGRESS),
            },
        )

    def find(self, key: Key) -> Record | None:
        """Return the record as it is now (a consistent read); see `Store`."""
        answer = self._ask(
            "get_item", TableName=self._table, Key={"key": _text(key.digest)}, ConsistentRead=True
        )
        item = answer.get("Item")
        return _record(item, self._now(key)) if item else None

    def _put(self, granted: Claim, condition: str, values: Item, names: Mapping[str, str]) -> bool:
        latest = self._now(granted.key, latest=True)
        ends = latest + granted.terms.retention.total_seconds()
        item = {
            "key": _text(granted.key.digest),
            "fingerprint": {"B": granted.fingerprint},
            "state": _text(State.IN_PROGRESS),
            "owner": _text(granted.owner),
            "attempt": _number(granted.attempt),
            "is_uncertain": {"BOOL": granted.is_uncertain},
            "lease_until": _number(latest + granted.terms.lease.total_seconds()),
            "expires_at": _number(ends),
            "ttl": _number(int(ends) + TTL_MARGIN),
        }
        return self._wins(
            "put_item",
            Item=item,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )

    def _wins(self, operation: str, **parameters: Any) -> bool:  # noqa: ANN401  boto3's
        """Return whether the condition of a write held."""
        try:
            self._ask(operation, TableName=self._table, **parameters)
        except ClientError:  # `_ask` lets no other pass
            return False
        return True

    def _ask(self, operation: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401  boto3's
        asked = time.monotonic()
        try:
            answer: dict[str, Any] = getattr(self.client, operation)(**parameters)
        except ClientError as error:
            self._read_clock(error.response, asked)
            if error.response["Error"]["Code"] == _LOST_RACE:
                raise
            code = error.response["Error"]["Code"]
            raise StoreUnavailable(
                f"DynamoDB refuses {operation} on the table {self._table}: {code}"
            ) from error
        except BotoCoreError as error:
            raise StoreUnavailable(
                f"DynamoDB does not answer, or not in time: {type(error).__name__}"
            ) from error
        self._read_clock(answer, asked)
        return answer

    def _read_clock(self, answer: Mapping[str, Any], asked: float) -> None:
        said = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if said:
            self._sample = _Sample(parsedate_to_datetime(said).timestamp(), asked, time.monotonic())

    def _now(self, key: Key, *, latest: bool = False) -> float:
        """Return the service's time: the earliest that it can be, or the latest."""
        sample = self._sample
        if sample is None or time.monotonic() - sample.answered > FRESH.total_seconds():
            self._ask("get_item", TableName=self._table, Key={"key": _text(key.digest)})
            sample = self._sample
        if sample is None:
            raise StoreUnavailable("DynamoDB answers without a Date, and so without a clock to go by")
        if latest:
            return sample.date + _COARSE + time.monotonic() - sample.asked
        return sample.date + time.monotonic() - sample.answered


def _code(error: StoreUnavailable) -> str:
    """Return what DynamoDB called the mistake; empty if it did not answer."""
    cause = error.__cause__
    return str(cause.response["Error"]["Code"]) if isinstance(cause, ClientError) else ""


def _granted(wanted: Claim, attempt: int, *, is_uncertain: bool) -> Claim:
    return Claim(wanted.key, wanted.fingerprint, wanted.owner, wanted.terms, attempt, is_uncertain)


def _spelled(result: Result | None) -> Item:
    if result is None:
        return {}
    spelled: Item = {"status": _number(result.status), "headers": _text(json.dumps(dict(result.headers)))}
    return spelled | ({"body": {"B": result.body}} if result.is_kept else {})


def _record(item: Item, now: float) -> Record:
    result = None
    if "status" in item:
        body = bytes(item["body"]["B"]) if "body" in item else b""
        headers = json.loads(item["headers"]["S"])
        result = Result(int(item["status"]["N"]), headers, body, is_kept="body" in item)
    return Record(
        bytes(item["fingerprint"]["B"]),
        State(item["state"]["S"]),
        UUID(item["owner"]["S"]),
        int(item["attempt"]["N"]),
        item["is_uncertain"]["BOOL"],
        timedelta(seconds=float(item["lease_until"]["N"]) - now),
        timedelta(seconds=float(item["expires_at"]["N"]) - now),
        result,
    )


def _text(value: object) -> dict[str, str]:
    return {"S": str(value)}


def _number(value: float) -> dict[str, str]:
    return {"N": repr(value)}
