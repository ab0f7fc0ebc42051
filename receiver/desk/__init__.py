"""Actions of an operator, each defined once, for the command line, the API, agents' tools and the pages.

- `registry`: what an action is, and the list of all
- `actions`: brings them into the list
- `forms`: what an action asks for, field by field, and what it answers as facts and tables
- `models`, `filters`: how what is typed is read: times, ids, which events
- `refusals`: why something is not done
- `listed_events`, `events`, `searches`, `dead_letters`: what came, what bodies contain, and what events died of
- `issues`: failures of one handler at one place, and what a person has said of them
- `diffs`: how a body differs from that of another event
- `content`, `deliveries`: content of rows, handed out to those who may see it, and deliveries as they may be shown
- `stats`: the numbers of the inbox at a glance, and what workers are at
- `replays`, `steps`, `entities`: running events again, and what a person decides about steps, waits and newest versions
- `feeds`: events as they come, for another machine, and of another ledger
- `rejected`: what was refused, and another chance for it
- `sources`: who sends, test events, and the secrets that senders handed out
- `pauses`: handlers, and what is paused
- `access`: who may use the API, what seals what is kept, who did what, and alerts
- `maintenance`: retention
- `rows`: rows of the ledger that are answers as they are
- `words`: what statuses, reasons and terms mean
"""
