"""HTTP as senders meet it: gunicorn with a worker of ours, and the endpoint for deliveries.

`gunicorn_conf` sets gunicorn up and `gunicorn_log` makes its messages JSON; `worker` is the process that withstands an
open network, by what is in `http`. `hooks` answers deliveries and `operator_pages` probes: `request` is what they see
of one, `body` reads it, bounded in size and time (with `slow_bodies` where a thread does), `request_headers` reads
tokens and types, `client_address` says whose request it is behind proxies, `own_site` refuses pages of others on this
machine, `response` is an answer, and `problem_details` is what every refusal looks like; `compression` is for the
console and the API. Inside other applications `mounted` has the endpoint, `asgi` where they are ASGI.
"""
