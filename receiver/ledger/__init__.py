"""The ledger: every statement hookonce runs on PostgreSQL, each with what it promises.

`store` takes events in, `runs` carries them through their handlers, `upkeep` keeps the tables in shape,
`desk` answers an operator. No other package writes SQL.
"""
