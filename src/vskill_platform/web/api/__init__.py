"""The API, version 1, one file per kind of thing; each ends in the table of its endpoints."""
