"""The rules for command lines: what they run, what needs no question, and what leaves the machine."""
