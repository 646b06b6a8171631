"""`make demo`: a sample repository whose bugs scripted agents mend and land, while you watch."""
