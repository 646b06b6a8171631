"""The merge queue's loop: merges are inspected, built, tested, landed or sent back."""
