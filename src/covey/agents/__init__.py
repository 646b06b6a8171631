"""The agent programs: one file each, pure; how to launch it, how to read it."""
