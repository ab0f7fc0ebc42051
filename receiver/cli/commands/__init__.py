"""The commands, one module each; two that belong together share one.

To run it: `serve`, `db`, `doctor`, `prune`, `window`. To try it: `dev`, `demo`, `trigger`, `sign`, `capture`, `new`.
To see what came: `events`, `transfer`, `tail`, `stats`, `alerts`, `rejected`, `quarantine`, `explain`. To act on it:
`replay`, `pause`. To configure it: `sources`, `secrets`, `keys`, `tokens`. To read: `docs`. For
the shell: `completion`, `man`.
"""
