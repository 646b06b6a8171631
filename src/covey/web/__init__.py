"""REST and SSE over the verbs."""
