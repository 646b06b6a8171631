"""What covey does with git, and how it finds the repository it stands in."""
