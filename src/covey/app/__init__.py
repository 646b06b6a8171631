"""The verbs: what anyone can ask of covey, the same through every surface."""
