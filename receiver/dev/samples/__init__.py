"""Bodies that senders post, for the trigger command and the demo: the senders' shapes, invented values.

A sample is the file <provider>/<type>.json; adding that file is all it takes to add one. In a file name
a slash is written as two underscores (Shopify's orders/create), a colon as %3A (Todoist's item:added), and
GitLab's Merge Request Hook is merge_request.

Each is written as if its event happened at WRITTEN. body() moves every time in it by the same span, so the
event happens now and a 30-day period is still 30 days long.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import unquote

WRITTEN = datetime(2026, 1, 15, 12, tzinfo=UTC)

_SECOND = timedelta(seconds=1)
_EPOCH = int(WRITTEN.timestamp())
_REACH = (
    400 * 86_400
)  # an integer this near to WRITTEN is a time; amounts, counts and ids of samples stay clear of it
_UNIX_TIMES = range(_EPOCH - _REACH, _EPOCH + _REACH)
_UNIX_MILLISECONDS = range((_EPOCH - _REACH) * 1000, (_EPOCH + _REACH) * 1000)
_CLOCK = re.compile(
    r"(?P<clock>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?P<fraction>\.\d{3})?)(?P<zone>Z| UTC|[+-]\d\d:\d\d)"
)
_SLACK_TS = re.compile(r"(\d{10})(\.\d{6})")

# The type to send when none is named; a provider that is not here sends its first.
_USUAL = {
    "adobe_sign": "AGREEMENT_WORKFLOW_COMPLETED",
    "azure_devops": "git.push",
    "bamboohr": "employee.updated",
    "bot_framework": "message",
    "cashfree": "PAYMENT_SUCCESS_WEBHOOK",
    "checkr": "report.completed",
    "commerce_layer": "orders.place",
    "datadog": "metric_alert_monitor",
    "figma": "FILE_UPDATE",
    "ghost": "post",
    "github": "push",
    "gitlab": "Push Hook",
    "google_chat": "MESSAGE",
    "mailersend": "activity.delivered",
    "mailjet": "sent",
    "mercury": "transaction.update",
    "merge": "LinkedAccount.synced",
    "midtrans": "settlement",
    "new_relic": "ACTIVATED",
    "opsgenie": "Create",
    "patreon": "members:pledge:create",
    "pipedrive": "create.deal",
    "recall_ai": "bot.status_change",
    "shopify": "orders/create",
    "shortcut": "story.update",
    "smartsheet": "row.created",
    "sonarqube": "quality_gate.OK",
    "standard_webhooks": "user.created",
    "statuspage": "incident.identified",
    "strapi": "entry.publish",
    "strava": "activity.create",
    "stripe": "invoice.paid",
    "sumsub": "applicantReviewed",
    "terraform_cloud": "run:completed",
    "todoist": "item:added",
    "vapi": "end-of-call-report",
    "viber": "message",
    "xendit": "ewallet.capture",
}
# Senders that put the event id in the body, and where; the others put it in a header, or have none.
_ID_PLACES = {
    "adobe_sign": "webhookNotificationId",
    "alchemy": "id",
    "azure_devops": "id",
    "bot_framework": "id",
    "checkr": "id",
    "coinbase_cdp": "id",
    "datadog": "id",
    "deepgram": "metadata.request_id",
    "fastspring": "events.0.id",
    "flutterwave": "webhook_id",
    "gusto": "uuid",
    "lever": "id",
    "mailersend": "data.id",
    "mailtrap": "events.0.event_id",
    "mercury": "id",
    "pipedrive": "meta.id",
    "shortcut": "id",
    "slack": "event_id",
    "statuspage": "incident.incident_updates.0.id",
    "stripe": "id",
    "tally": "eventId",
    "viber": "message_token",
}
_ID_PLACES_OF_TYPES = {("statuspage", "component_update"): "component_update.id"}


def types(provider: str) -> list[str]:
    """List the types that have a sample, sorted, as the provider names them; empty if there are none."""
    return list(_samples(_folder_name(provider)))


def body(
    provider: str,
    type: str | None,  # noqa: A002  the word of the vocabulary
    *,
    event_id: str,
    now: datetime,
) -> bytes:
    """Return a body of this type (None: the provider's usual one) that happened at `now`, an aware time.

    `event_id` is in it where the sender's id lives in the body. A provider without samples gets
    `{"id", "type", "created"}`, with any type. Raises: LookupError, with the nearest type, if a provider that
    has samples has none of this type.
    """
    provider = _folder_name(provider)
    samples = _samples(provider)
    seconds = (now - WRITTEN) // _SECOND
    if not samples:
        return encode({"id": event_id, "type": type or "test", "created": _EPOCH + seconds})
    chosen = _USUAL.get(provider, next(iter(samples))) if type is None else type
    if chosen not in samples:
        raise LookupError(_no_sample(provider, chosen, list(samples)))
    document = _moved(json.loads(samples[chosen].read_text(encoding="utf-8")), seconds)
    if place := _ID_PLACES_OF_TYPES.get((provider, chosen)) or _ID_PLACES.get(provider):
        set_path(document, f"{place}={json.dumps(event_id)}")
    return encode(document)


def encode(document: object) -> bytes:
    """Write compact JSON, in ASCII: whatever a `--set` brought in can be sent."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")


def set_path(document: Any, assignment: str) -> None:  # noqa: ANN401  any JSON
    """Set one value in place: `data.object.amount=500`, `commits.0.message=hello`.

    The value is JSON if it reads as JSON, else a string. Missing objects and nulls on the way become objects;
    an index one past a list's end appends. Raises: ValueError if the path cannot exist; then nothing changed.
    """
    path, equals, text = assignment.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise ValueError(f"{assignment!r} sets nothing; write path=value, as in data.object.amount=500")
    _set(document, keys, 0, _value(text))


def _set(holder: Any, keys: list[str], depth: int, value: object) -> None:  # noqa: ANN401
    slot = _slot(holder, keys, depth)
    if depth < len(keys) - 1:
        inner = _get(holder, slot)
        inner = {} if inner is None else inner
        _set(inner, keys, depth + 1, value)
        value = inner
    if slot == len(holder) and isinstance(holder, list):
        holder.append(value)
    else:
        holder[slot] = value


def _slot(holder: object, keys: list[str], depth: int) -> str | int:
    key, here = keys[depth], ".".join(keys[:depth]) or "the body"
    if isinstance(holder, dict):
        return key
    if not isinstance(holder, list):
        raise ValueError(  # noqa: TRY004  the path is what is wrong
            f"cannot set {'.'.join(keys)}: {here} is {json.dumps(holder)}, not an object or a list"
        )
    if not (key.isascii() and key.isdecimal()) or int(key) > len(holder):
        raise ValueError(
            f"cannot set {'.'.join(keys)}: {here} is a list of {len(holder)}; "
            f"write an index from 0 to {len(holder)}, not {key!r}"
        )
    return int(key)


def _get(holder: Any, slot: str | int) -> Any:  # noqa: ANN401
    if isinstance(holder, dict):
        return holder.get(str(slot))
    return holder[slot] if int(slot) < len(holder) else None


def _value(text: str) -> object:
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)  # NaN and 1e999 read as JSON and cannot be written as JSON
    except (ValueError, RecursionError):
        return text
    return value


def _folder_name(provider: str) -> str:
    return provider.replace("-", "_").lower()


def _samples(folder_name: str) -> dict[str, Traversable]:
    """Find a provider's samples by type, comparing names, never joining them: none can leave the package."""
    found = {
        _type(folder_name, file.name.removesuffix(".json")): file
        for folder in files(__name__).iterdir()
        if folder.name == folder_name and folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".json")
    }
    return dict(sorted(found.items()))


def _type(provider: str, stem: str) -> str:
    if provider == "gitlab":
        return stem.replace("_", " ").title() + " Hook"
    return unquote(stem.replace("__", "/"))


def _no_sample(provider: str, wanted: str, known: list[str]) -> str:
    lower = {name.lower(): name for name in known}
    near = get_close_matches(wanted.lower(), lower, n=1) or [
        name for name in lower if name.startswith(wanted.lower())
    ]
    hint = f"did you mean {lower[near[0]]!r}? " if wanted and near else ""
    return f"no sample {wanted!r} for {provider}; {hint}`hookonce trigger --list` shows all"


def _moved(value: Any, seconds: int) -> Any:  # noqa: ANN401  any JSON
    match value:
        case dict():
            return {key: _moved(inner, seconds) for key, inner in value.items()}
        case list():
            return [_moved(inner, seconds) for inner in value]
        case str():
            return _moved_text(value, seconds)
        case int() if value in _UNIX_TIMES:
            return value + seconds
        case int() if value in _UNIX_MILLISECONDS:
            return value + seconds * 1000
    return value


def _moved_text(text: str, seconds: int) -> str:
    if clock := _CLOCK.fullmatch(text):
        moment = datetime.fromisoformat(clock["clock"]) + seconds * _SECOND
        return moment.isoformat(text[10], "milliseconds" if clock["fraction"] else "seconds") + clock["zone"]
    if stamp := _SLACK_TS.fullmatch(text):
        return f"{int(stamp[1]) + seconds}{stamp[2]}"
    return text
