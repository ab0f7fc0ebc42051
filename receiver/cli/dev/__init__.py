"""What `hookonce dev` shows and does: `introduction` at the start, `screen` for each line, `reloading` for each change."""
