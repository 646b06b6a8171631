"""The verbs of leases."""
