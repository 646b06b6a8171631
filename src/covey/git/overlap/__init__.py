"""Where open branches come close to each other."""
