"""The verbs of overlaps."""
