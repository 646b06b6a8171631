"""How the next tests of the merge queue are chosen: one file per strategy."""
