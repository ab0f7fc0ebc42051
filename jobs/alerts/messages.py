"""An alert as people read it, and the body that each kind of target takes.

Slack: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks (text; `&`, `<`, `>` are escaped)
Teams: a workflow with the trigger "When a Teams webhook request is received", which takes adaptive cards only
Discord: https://discord.com/developers/docs/resources/webhook#execute-webhook (2,000 characters; names nobody)
PagerDuty: https://developer.pagerduty.com/docs/events-api-v2/trigger-events (summary of 1,024 characters)
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, Final

from hookonce.receiver.config.alerts import Target

MAX_LENGTH = 1800
"""Characters of a message, which each target takes."""
_MAX_SUMMARY = 1024
_HEADLINES: Final[Mapping[str, str]] = {"alert.raised": "Alert", "alert.resolved": "Over"}


@dataclass(frozen=True)
class Message:
    """A headline, lines beneath it, and a link (or '')."""

    headline: str
    lines: tuple[str, ...]
    link: str
    label: str
    """Names the trouble, raised and resolved alike."""
    is_over: bool
    is_test: bool

    @property
    def text(self) -> str:
        """The message as plain text."""
        return _cut("\n".join([self.headline, *self.lines]), MAX_LENGTH) + (
            f"\n{self.link}" if self.link else ""
        )


def message_of(document: Mapping[str, Any]) -> Message:
    """Return the message of an alert's event, whose body is `document`."""
    kind, data = str(document["type"]), document["data"]
    over = kind == "alert.resolved"
    if issue := data.get("issue"):
        what = "over" if over else "failed again" if data["kind"] == "reopened_issue" else "new issue"
        headline = f"{what}: {issue['error']} in {issue['handler']}"
        lines = [
            f"place: {issue['place']}" if issue["place"] else "",
            f"failed attempts: {issue['failures']}, dead events: {issue['dead']}",
            f"release: {issue['release']}" if issue["release"] else "",
            f"error: {issue['text']}" if issue.get("text") else "",
            f"see `hookonce issues show {data['subject']}`",
        ]
    else:
        about = f"{data['kind']} {data['subject']}".strip() if "kind" in data else "hookonce"
        headline = f"{_HEADLINES.get(kind, 'Alert')}: {about}"
        lines = [str(data["detail"])]
    label = f"hookonce-alert-{data.get('id', kind)}"
    return Message(
        headline, tuple(filter(None, lines)), data.get("link") or "", label, over, kind == "alert.test"
    )


def slack(message: Message, _target: Target) -> dict[str, object]:
    """Return the body of an incoming webhook of Slack."""
    escaped = message.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped}


def teams(message: Message, _target: Target) -> dict[str, object]:
    """Return the body of a workflow of Teams: an adaptive card."""
    texts = [{"type": "TextBlock", "text": message.headline, "weight": "Bolder", "wrap": True}]
    texts += [{"type": "TextBlock", "text": _cut(line, MAX_LENGTH), "wrap": True} for line in message.lines]
    card: dict[str, object] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": texts,
    }
    if message.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": message.link}]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def discord(message: Message, _target: Target) -> dict[str, object]:
    """Return the body of a webhook of Discord, which notifies nobody whose name a text holds."""
    return {"content": message.text, "allowed_mentions": {"parse": []}}


def pagerduty(message: Message, target: Target) -> dict[str, object]:
    """Return an event of the Events API: what is raised opens an incident, what is over resolves it."""
    event: dict[str, object] = {
        "routing_key": target.secret,
        "event_action": "resolve" if message.is_over else "trigger",
        "dedup_key": message.label,
        "payload": {
            "summary": _cut(message.headline, _MAX_SUMMARY),
            "source": "hookonce",
            "severity": "info" if message.is_test else "error",
            "custom_details": {"text": "\n".join(message.lines)},
        },
    }
    if message.link:
        event["links"] = [{"href": message.link, "text": "Open"}]
    return event


def mail(message: Message, target: Target, event_id: str) -> EmailMessage:
    """Return a mail; its id is the alert's, so that a mail which is sent again is known."""
    letter = EmailMessage()
    letter["From"] = target.sender
    letter["To"] = ", ".join(target.to)
    letter["Subject"] = f"[hookonce] {' '.join(message.headline.split())}"
    letter["Date"] = formatdate(usegmt=True)
    letter["Message-ID"] = f"<{event_id}@{target.sender.rpartition('@')[2] or 'hookonce'}>"
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content(message.text + "\n")
    return letter


TEMPLATES: Final[Mapping[str, Callable[[Message, Target], dict[str, object]]]] = {
    "slack": slack,
    "teams": teams,
    "discord": discord,
    "pagerduty": pagerduty,
}
"""The kinds of targets that take a POST of JSON and know no signature."""


def body_of(message: Message, target: Target) -> bytes:
    """Return the body for a target of one of `TEMPLATES`."""
    return json.dumps(TEMPLATES[target.kind](message, target)).encode()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
