"""Working the queue: the consumer, recovery, the schedule, and the health that shows that nothing is stuck."""
