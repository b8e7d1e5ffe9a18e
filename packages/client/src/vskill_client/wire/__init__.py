"""What the client asks of a registry, and what it is answered: each call with its method, its path and its two structs.
The registry's actions are declared with these."""
