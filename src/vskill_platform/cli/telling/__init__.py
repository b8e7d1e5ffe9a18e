"""Commands of `telling`: who is told what."""
