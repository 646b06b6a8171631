"""Gates as they are run: worktrees of the pool, rooms, and warm folders."""
