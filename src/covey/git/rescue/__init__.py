"""Never lose work: what lies in a worktree, kept in a commit of its own and brought back."""
