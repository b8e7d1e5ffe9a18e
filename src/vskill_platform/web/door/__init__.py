"""The front door of a web process: connections, their limits, and the answers to refused clients."""
