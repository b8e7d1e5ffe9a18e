"""Records of `review`: what waits for a person, and what reviewers decide."""
