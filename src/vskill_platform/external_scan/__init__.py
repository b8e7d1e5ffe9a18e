"""Other people's analysers beside our own scanner: what they say is shown next to our verdict and never gates."""
