"""The front door of a web process: connections, their limits, and what is said to those who are turned away."""
