"""The verbs of costs."""
