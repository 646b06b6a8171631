"""The places where runs live: one file each, behind one protocol."""
