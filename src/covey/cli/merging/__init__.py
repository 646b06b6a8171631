"""Commands of the merge queue."""
