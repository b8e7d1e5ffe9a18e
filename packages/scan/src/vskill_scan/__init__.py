"""The scanner: reads the files of a skill, and says what it can do and what is wrong with it. It knows no registry."""
