"""Where Django looks for commands: in `commands`."""
