"""Commands of leases."""
