"""Shapes of history."""
