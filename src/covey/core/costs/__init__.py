"""The rules of costs: what runs spent, and what they may spend."""
