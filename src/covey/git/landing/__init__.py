"""Main moves: with the checkout that holds it, to a remote, and back where a session had no business."""
