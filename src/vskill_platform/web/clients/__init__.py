"""The wire protocols of clients that people already have: one file for each, thin, over the same stores as the API."""
