"""Signing: the registry's keys, the statement about a version, and the envelope that carries both offline."""
