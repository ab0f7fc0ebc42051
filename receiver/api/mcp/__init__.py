"""Tools for agents by the Model Context Protocol, made of the desk's list; they ask the API (`remote_desk`).

`tools` makes a tool of each action and `resources` has what can be looked at by an address; `confirmations` seals what
a plan said, `fence` marks what senders wrote as data, and `server` serves it all.
"""
