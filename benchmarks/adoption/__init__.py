"""The plugin on the tests of public projects: what it costs them, and what it says of their releases."""
