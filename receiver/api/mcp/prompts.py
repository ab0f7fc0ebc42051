"""Prompts for the three commonest jobs: why an event failed, what to do after a fix, why a sender is rejected."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from hookonce.receiver.desk.refusals import Invalid, NotFound


class _Job(NamedTuple):
    about: str
    argument: str
    what: str
    text: str


_JOBS: Final[Mapping[str, _Job]] = {
    "why_did_it_fail": _Job(
        "Find out why an event or an issue failed.",
        "id",
        "an event, or an issue",
        "Find out why {!r} failed in the webhook inbox. Call `explain_failure` with it; name its handler, its error, "
        "the place in the code, whether the body or the code is the likely cause, and how many others died of the same "
        "(`dead_letters`). Change nothing.",
    ),
    "replay_after_a_fix": _Job(
        "Run dead events of an issue again, once its cause is fixed.",
        "issue",
        "an issue, as `issues` lists it",
        "The cause of issue {!r} is fixed. Plan a bulk replay of its dead events (`plan` with the action "
        "`start_bulk_replay` and a filter of status `dead` and this issue), show me how many events match and of which "
        "types, and call `confirm` only once I agree. Then follow it with `show`, and tell me which events died again.",
    ),
    "why_is_a_sender_rejected": _Job(
        "Find out why deliveries of a source are rejected.",
        "source",
        "a configured source",
        "Deliveries of the source {!r} are rejected by the webhook inbox. Call `rejected` and `explain_rejection` for "
        "it, tell me which check fails, the likely cause, and what to change at the sender or in hookonce.toml. "
        "Change nothing.",
    ),
}


def listed() -> list[Prompt]:
    """Return the prompts."""
    return [
        Prompt(
            name=name,
            description=job.about,
            arguments=[PromptArgument(name=job.argument, description=job.what, required=True)],
        )
        for name, job in _JOBS.items()
    ]


def filled(name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """Return a prompt with its argument. Raises: `NotFound`, `Invalid`."""
    job = _JOBS.get(name)
    if job is None:
        raise NotFound(f"no prompt is called {name!r}; `prompts/list` has all")
    if arguments.keys() != {job.argument}:
        raise Invalid(f"the prompt {name} takes {job.argument!r}, {job.what}, and nothing else")
    content = TextContent(text=job.text.format(arguments[job.argument]))
    return GetPromptResult(description=job.about, messages=[PromptMessage(role="user", content=content)])
