"""Public projects whose own tests run through the plugin: what it costs them, and what it says of their releases."""
