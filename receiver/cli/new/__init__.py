"""The parts of the commands that start a provider, or a project (`project`).

`from_capture` writes a module, a test and a delivery, with what `guess` reads from the delivery; `source_table` says
the same as a source of a generic provider, and `config_edit` adds the new place to hookonce.toml.
"""
