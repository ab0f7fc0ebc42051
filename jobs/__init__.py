"""One event through its handlers: notified, claimed, attempted, done or tried again.

- `event`: the event as a handler sees it
- `provider_lookup`: the provider that reads an event's body
- `registration`, `handlers`, `handler_signature`: `@on`, `@on_batch`, the registry behind, and what handlers ask for
- `capabilities`: what an event can do beside holding its data: steps, waits for other events
- `order`: the newest wins: what becomes of an event that is older than what was done
- `configured`: the handlers that the configuration makes: of commands, and of forwards
- `worker`: the RQ worker, and the one job it takes
- `mirror`: what RQ's tools show of a worker
- `claimer`: what one process claims, and looks after
- `buffer`: what is claimed and not started
- `plan`: what becomes of each due run: leased, or why it waits; no SQL
- `slots`: one slot in the main thread, or a thread for each of many: what makes the attempts of what was claimed
- `drain`: what an RQ job does, and what a worker is made of
- `attempts`: one attempt of one run: transaction, time limit, outcome
- `failures`: what is kept of a failed attempt: error, traceback, issue, release
- `report`: what the desk knows of what a worker is at
- `stopping`: whether this process was asked to stop
- `maintenance`: the sweep and what it does besides
- `alerts`: what is wrong, found and sent
- `children`: what a supervisor of workers forks off itself; those of `hookonce dev` load handlers anew
- `sender_keys`: keys of senders' APIs, which only the sweep has
- `cli`: `hookonce worker` and `hookonce sweep`
- `demo_handlers`: the handlers of `hookonce demo`
"""
