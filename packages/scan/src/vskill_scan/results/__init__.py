"""What the scanner says: the capability card, the report in its formats, and the forecast."""
