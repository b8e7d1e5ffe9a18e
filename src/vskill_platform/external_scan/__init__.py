"""Other people's analysers beside our own scanner: their reports are shown next to our verdict, and gate publishing
only if the operator requires it (`requirements`)."""
