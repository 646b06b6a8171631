"""The rules of the board: tasks, what they need, in which order and by whom they are taken."""
