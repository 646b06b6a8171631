"""The rules of leases: who may write what, for how long, and what an agent is told of it."""
