"""covey runs many coding agents on one git repository at once, and lands their work."""

__version__ = "0.1.0"
