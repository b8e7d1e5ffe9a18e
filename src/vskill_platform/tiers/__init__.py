"""The two tiers as the registry runs them: the scanner in a pool of child processes, and the judge."""
