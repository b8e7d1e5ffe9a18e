"""What code does, told by its statements: which secrets it reads, what it sends, fetches and runs."""
