"""What every command stands on: words and options, the client, output."""
