"""The merge queue: what is tested together, what lands, what is sent back; pure, for daemon and simulator alike."""
