"""Maintains stored content: finds what is damaged, repairs it, and deletes what no record names."""
