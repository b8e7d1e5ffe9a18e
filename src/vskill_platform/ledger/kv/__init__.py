"""Records by key: one contract, one file per engine."""
