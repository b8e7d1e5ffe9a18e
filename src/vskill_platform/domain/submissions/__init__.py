"""Rules of `submissions`: what was handed in and where it stands."""
