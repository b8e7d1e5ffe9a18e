"""The queue of messages: one contract, one file per engine."""
