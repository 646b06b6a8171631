"""The rules of merging: merges, gates, landings, and what goes back to an author."""
