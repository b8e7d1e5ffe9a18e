"""What the client asks of a registry: calls with method, path and two structs, by which actions are declared too."""
