"""Loops that make the world match the rows: look, judge, act, repeat."""
