"""The receiving side of hookonce: HTTP in, ledger rows out.

A sender's POST reaches the front door (app) and the web layer, which reads the body. The intake verifies it with its
sender's provider, makes rows of its events and stores them, in one batch with whatever else came: a window in Redis
suppresses fast retries, the ledger in PostgreSQL decides. After COMMIT a worker is notified through Redis, and the
sender gets its 2xx. The handlers run elsewhere, in the package jobs.

`app`: the front door: which path goes to the endpoint, the API, the dashboard or a health check
`web`: HTTP: bodies, answers, and gunicorn with a worker of ours
`source`: a source, one configured place that sends to us
`durations`: times as people write them
`commands`: what clients ask for under a key, each an event with one run
`intake`: the way of one delivery, from its bytes to the ledger's verdict
`samples`: test deliveries of every sender, with ids and times of their own
`remote`: another inbox, as a person's own machine asks it
`outbound`: requests that we make: the keys that senders publish
`privacy`: what may be kept of a delivery: masking, redaction, encryption at rest
`encryption`: AES-256-GCM with the configured keys
`ledger`: every statement on PostgreSQL
`endpoints`: people's own endpoints, done once per key, in Flask, Django and FastAPI
`idempotency`: operations that are done once per key: the machine, and the stores of its records
`redis`: everything that talks to Redis: the dedup window and the work queue
`config`: hookonce.toml and the environment, as settings
`monitoring`: health, metrics, traces, and the events that report alerts
`desk`: what an operator can ask or do, said once
`api`: the admin API, for programs
`dashboard`: the admin pages, for people
`vocabulary`: what statuses, reasons and exit codes mean to an operator
`cli`: the command line
`processes`: child processes, started and kept alive
`dev`: the whole stack on one machine: real servers, and a demo
`logs`: one JSON object per line
`failpoints`: places where a test may stop the process dead
"""
