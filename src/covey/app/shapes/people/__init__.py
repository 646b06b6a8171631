"""Shapes of people."""
