"""covey runs many coding agents on one git repository at once, and lands their work."""

__version__ = "0.1.0"
PROTOCOL = "1"
"""What CLI and daemon have to agree on; it changes when an old CLI would misunderstand a new daemon."""
