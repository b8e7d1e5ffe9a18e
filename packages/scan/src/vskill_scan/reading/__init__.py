"""From a skill's files to the pieces of text that rules look at."""
