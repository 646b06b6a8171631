"""All SQL, by room: each a part of a transaction."""
