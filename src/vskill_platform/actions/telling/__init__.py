"""Actions of `telling`: who is told what."""
