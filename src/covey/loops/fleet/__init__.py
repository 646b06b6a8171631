"""The fleet's loop: sessions and runs are brought to where their rows say."""
