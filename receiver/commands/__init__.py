"""Commands: what clients ask for under an `Idempotency-Key`, each an event with exactly one run.

- `endpoint`: `/commands/<name>`, from a request to its answer
- `requests`: who asks, under which key, for what; strictly read
- `quotas`: how many new keys a client may use
- `outcomes`: what became of commands, one look for all who wait in a process
- `answers`: what a client is told of that
- `conduct`: clients that use their keys wrongly
- `openapi`: the description of all commands
"""
