"""The verbs of merging."""
