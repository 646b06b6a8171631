"""The rules: pure functions over values, with no clock, disk, process or network."""
