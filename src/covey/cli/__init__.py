"""The command line: parse, ask, show."""
