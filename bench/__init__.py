"""Measures covey, and prints each figure beside its target and the best peer's."""
