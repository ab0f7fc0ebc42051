"""Meanings of the inbox's words: a status, a reason of a rejection, a term."""

from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.desk.models import Listed, RequestModel, Text
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.rows import Ours, ResponseModel
from hookonce.receiver.vocabulary import EVENT_STATUSES, REFUSALS, RUN_STATUSES, TERMS, UNAVAILABLE

_MEANINGS = [
    *(("event status", status.value, text, None) for status, text in EVENT_STATUSES.items()),
    *(("run status", status.value, text, None) for status, text in RUN_STATUSES.items()),
    *(("term", word, text, None) for word, text in TERMS.items()),
    *(("reason", reason, each.means, each.do) for reason, each in {**REFUSALS, **UNAVAILABLE}.items()),
]


class WordPath(RequestModel):
    """A word that is to be explained."""

    word: Text


class Meaning(ResponseModel):
    """The meaning of a word as one kind of word; `do` is advice, if there is any."""

    kind: Ours
    word: Ours
    means: Ours
    do: Ours | None


@action(scope=Scope.READ)
def explain_word(desk: Desk, which: WordPath) -> Listed[Meaning]:  # noqa: ARG001  every action's
    """Say what a word of the inbox means: a status (`held`), a reason of a rejection (`stale`), a term (`lease`)."""
    return meanings(which)


def meanings(which: WordPath) -> Listed[Meaning]:
    """Return what a word means, for which no ledger is needed. Raises: `NotFound`."""
    wanted = which.word.strip().lower()
    found = [
        Meaning(kind=kind, word=word, means=means, do=do)
        for kind, word, means, do in _MEANINGS
        if word == wanted
    ]
    if not found:
        guess = did_you_mean(wanted, sorted({word for _, word, _, _ in _MEANINGS}))
        raise NotFound(
            f"{which.word!r} is no word of the inbox{guess}; expected a status, a reason of a rejection, or a term, "
            "as held, stale or lease"
        )
    return Listed[Meaning](data=found)
