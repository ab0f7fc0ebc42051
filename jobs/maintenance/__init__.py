"""The sweep: upkeep beside the workers, in one process or many.

- `sweep`: finds what was forgotten and notifies workers of it
- `tasks`: what the sweep does besides, retention among it
"""
