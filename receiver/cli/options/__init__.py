"""The options that several commands have, with the same names and meanings.

`event_options` choose events, with `time_option` for since and until. `completion_types` tell the shell what can be
completed, and `completion_values` finds it. `examples` end a command's help, and `repeats` refuses an option that is
typed twice.
"""
