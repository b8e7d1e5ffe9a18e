"""Content by its hash: one contract, one file per engine."""
