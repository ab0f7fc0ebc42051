"""Tools for agents by the Model Context Protocol, made of the desk's list; they ask the API (`remote_desk`).

`tools` has fourteen tools, `questions` those of them that only look, `prompts` the commonest jobs, and `resources` what
can be looked at by an address; `confirmations` seals a plan, `fence` marks what senders wrote as data, and `server`
serves it all.
"""
