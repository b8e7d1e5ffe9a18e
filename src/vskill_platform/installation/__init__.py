"""A whole installation: as one file, copied into another store, or filled with examples."""
