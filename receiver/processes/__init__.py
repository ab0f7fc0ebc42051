"""Processes of ours: child processes, which do not outlive us and are kept alive, and how one waits.

`spawn` ties a program's life to ours, `child` is one run of a program with its output, `forked` one of a function, and
`supervisor` starts again what died. `introduction` is what a long-running one says of itself when it starts;
`collector` leaves alone what it has loaded by then; `repeating` is what it does again and again in a thread.

`waits` is how what has to wait does so inside of a process: its thread stands still, or its event loop goes on.
`cores` is how many processors there are.
"""
