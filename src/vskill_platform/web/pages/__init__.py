"""Pages for people, one file per area; each ends in the table of its endpoints."""
