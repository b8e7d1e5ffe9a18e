"""Records of `telling`: who is told what."""
