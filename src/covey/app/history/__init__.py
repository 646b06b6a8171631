"""The verbs that read and care for what happened."""
