"""Looking after stored content: find what is damaged, repair it, and delete what no record names."""
