"""The parts of the replay command.

`named` replays the events that somebody names; `question` asks before many are run again, `bulk` drives a bulk replay;
`outcomes` prints what became of each.
"""
