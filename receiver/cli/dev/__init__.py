"""What `hookonce dev` shows and does: `introduction` at its start, `screen` for a line, `reloading` for a change."""
