"""Commands by which people and agents talk and decide."""
