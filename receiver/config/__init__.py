"""The configuration: hookonce.toml and the environment, read once into settings that don't change.

`settings` puts everything together; what stands in `.env`, `dotenv_file` adds to the environment. What is wrong is one
of the `mistakes`; those of the file's tables are put into words by `file_mistakes`. `servers` finds PostgreSQL and
Redis, with `server_urls` to check their addresses and `embedded_servers` where the development stack
runs them. One module per table reads the rest: `sources`, `commands`, `admin`, `alerts`,
`tracing` and `encryption_keys`. They share `secret_references` (where a secret is) and `suggestions`
(for misspelt names). `forwards` reads where events go on to, at `addresses` that sources may have, too.
"""
