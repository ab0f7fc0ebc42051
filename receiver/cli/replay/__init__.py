"""The parts of the replay command.

`named` replays the events that somebody names, `bulk` drives a bulk replay; `outcomes` prints what became of each, and
`waiting` waits for their ends.
"""
