"""Rows and log in one transaction."""
