"""`make demo`: a sample repository whose board scripted workers claim dry, while you watch."""
