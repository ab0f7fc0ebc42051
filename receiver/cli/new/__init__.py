"""The parts of the command that starts a provider.

`files` writes a module, a delivery and a test from nothing, `from_capture` writes them from a captured delivery with
what `guess` reads from it, `source_table` says the same as a source of a generic provider, and `config_edit` adds the
new place to hookonce.toml.
"""
