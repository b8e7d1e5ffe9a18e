"""The door: what is admitted, and the one way a submission is written."""
