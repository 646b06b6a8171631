"""What main would be: candidates built from objects alone, and what is read before that."""
