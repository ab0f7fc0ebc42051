"""docs/reference/glossary.md, exits.md and environment.md: the words operators see, from `receiver.vocabulary`."""

from hookonce.providers import Reason
from hookonce.receiver import vocabulary
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.web import hooks
from tests.support.reference.layout import code, head, table

STATUSES = hooks._STATUS  # noqa: SLF001  # one table, where the answers are made
OTHERS = {
    "conflict": 409,
    "ledger_unavailable": 503,
    "key_unavailable": 503,
    "overloaded": 503,
    "internal_error": 500,
}


def glossary():
    return (
        head("Glossary: terms, statuses and reasons", "`receiver/vocabulary.py`")
        + "\n## Terms\n\nIn the order of a delivery's life, and then of an event's.\n\n"
        + table(("term", "means"), vocabulary.TERMS.items())
        + "\n## Statuses of an event\n\n"
        + table(("status", "means"), _pairs(vocabulary.EVENT_STATUSES))
        + "\n`hookonce events list --status`, `hookonce_events` and the dashboard use these words. An event's status "
        "is that of its runs: running before waiting, waiting before dead, dead before done.\n"
        + "\n## Statuses of a run\n\nA run is one handler on one event.\n\n"
        + table(("status", "means"), _pairs(vocabulary.RUN_STATUSES))
        + "\n## Reasons of a rejection\n\n"
        "The sender gets the status and the reason, as `code` in a problem document. The same word is in the log, in "
        "`hookonce_rejections_total` and in `hookonce rejected list --reason`. A provider may want another status "
        "for its sender; the reason stays.\n\n"
        + table(("reason", "status", "means", "what to do"), map(_reason, Reason))
        + "\n## Other answers to a sender\n\n"
        + table(("code", "status", "means", "what to do"), map(_other, OTHERS))
        + "\nEach 503 has `Retry-After`.\n"
    )


def exits():
    return (
        head("Exit codes", "`receiver/cli/output/exits.py`")
        + "\n"
        + table(("code", "means"), [(str(int(each)), vocabulary.EXITS[each.name]) for each in Exit])
        + "\nCtrl-C ends a command with 130, unless it is meant to be stopped so.\n"
    )


def environment():
    return (
        head("Environment variables", "`receiver/vocabulary.py`")
        + "\n"
        + table(("variable", "means"), _pairs(vocabulary.VARIABLES))
        + "\nBesides these, secrets are read from the variables that the configuration names: "
        '`secrets = ["env:STRIPE_WEBHOOK_SECRET"]`.\n\n'
        "Every `hookonce` command reads `.env` in the directory that it is started in (`NAME=value`, comments behind "
        "`#`; nothing is expanded). A variable that is set in the environment wins over it. Frameworks, and a "
        "`gunicorn` of your own, do not read it.\n"
    )


def _pairs(words):
    return [(code(word), meaning) for word, meaning in words.items()]


def _reason(reason):
    refusal = vocabulary.REFUSALS[reason]
    return code(reason.value), str(STATUSES[reason]), refusal.means, refusal.do


def _other(word):
    refusal = vocabulary.UNAVAILABLE[word]
    return code(word), str(OTHERS[word]), refusal.means, refusal.do
