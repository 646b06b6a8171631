"""Shapes of the fleet."""
