"""Rules of `telling`: who is told what."""
