"""Records of `verdicts`: what was found out about content, and what follows from it."""
