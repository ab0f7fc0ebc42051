"""The parts of the commands that start a provider, or a project (`project`).

`files` writes a module, a delivery and a test from nothing, `from_capture` writes them from a captured delivery with
what `guess` reads from it, `source_table` says the same as a source of a generic provider, and `config_edit` adds the
new place to hookonce.toml.
"""
