"""Shapes of the board."""
