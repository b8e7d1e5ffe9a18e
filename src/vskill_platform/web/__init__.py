"""The web side: reads the stores and shows them to clients and operators. It needs no live worker."""
