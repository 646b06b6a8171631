"""The database: its file, its lock, its one writer, its rows, and whether rows and log agree."""
