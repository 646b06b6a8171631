"""What is asked and what is answered: the types that validate requests, and from which OpenAPI is made."""
