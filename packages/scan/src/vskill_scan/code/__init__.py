"""What code does, told from its syntax: which secrets it reads, what it sends, fetches and runs."""
