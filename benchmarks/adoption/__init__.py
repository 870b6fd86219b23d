"""Runs the tests of public projects with the plugin: its cost, and its findings in their releases."""
