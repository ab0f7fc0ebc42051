"""The parts of the replay command.

`named` replays the events that somebody names, `bulk` drives a bulk replay, and `outcomes` prints what became of each.
"""
