"""Running stored events again; each replay is a new round, the next cycle of its runs, audited.

- `events`: those that are named
- `bulk`: all that match a filter, step by step
- `discards`: events given up by a person, until they are replayed
- `rereading`: what is stored of unreadable events, and their end once they are read
- `transfer`: stored events taken into another ledger
"""
