"""What keeps records: the store, the queue, the content, and time. It knows skills only by their declared fields."""
