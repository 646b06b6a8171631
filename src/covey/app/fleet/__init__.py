"""The verbs of sessions and runs."""
