"""Output of commands, and their exit codes.

`tables` prints listings for people and programs, `terminal_tables` fits them to a terminal, `tracebacks` shows why a
handler failed, `event_lines` lists events and `event_page` shows one, with `colors` for statuses, `times` and numbers
in `words`. `printing` tells of what goes on, line by line, and `new_files` writes files where there are none.
`exits` turns errors into exit codes.
"""
