"""Queries of an operator. They only read, and bounded at any size of the ledger.

- `event_filter`, `id_ranges`: which events are meant, and where in the ledger they can be
- `events`, `event_details`, `event_lookup`: listings and pages, one event in full, events by a part of their id
- `failures`: failed attempts with their tracebacks
- `needles`, `body_search`: what is looked for in bodies, and where it is
- `choices`: sources, types, accounts and handlers to choose from
- `run_outcomes`: what the runs of listed events came to, and of what they died
- `tail`: events behind an id, and those that were seen, as they are now
- `handler_stats`: how handlers fare
- `rejected`: rejected deliveries, and conflicts
- `feed`: events in the order of the ledger, behind a cursor
"""
