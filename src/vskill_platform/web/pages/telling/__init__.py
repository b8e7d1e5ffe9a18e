"""Pages of `telling`: who is told what."""
