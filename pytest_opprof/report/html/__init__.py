"""The HTML report: one file that needs no network, drawn by its own script from the data in it."""
