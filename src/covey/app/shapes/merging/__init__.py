"""Shapes of merging."""
