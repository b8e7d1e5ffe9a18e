"""What keeps records: the store, the queue, the content, and time. It knows no skill but by its declared fields."""
