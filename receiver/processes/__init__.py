"""Child processes: started so that none outlives us, and kept alive.

`spawn` ties a program's life to ours, `child` is one run of a program with its output, `forked` one of a function, and
`supervisor` starts again what died. `introduction` is what a long-running one says of itself when it starts;
`collector` leaves alone what it has loaded by then.
"""
