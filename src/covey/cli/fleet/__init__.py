"""Commands of sessions and runs."""
