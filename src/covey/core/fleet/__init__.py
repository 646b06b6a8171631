"""The rules of the fleet: sessions, their runs, what is told to them and what is made of what they say."""
