"""The places where runs live, longer than we do: as plain processes, and some of them in terminals."""
