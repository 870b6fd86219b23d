"""What happened: the native collector and the sources that feed it."""
