"""A run as a document: the wall between the live process and everything that judges and shows."""
