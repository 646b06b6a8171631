"""Commands that show and care for the log."""
