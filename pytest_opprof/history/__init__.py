"""Measurements over time: a log of small records, tables for many repositories, trends and change points."""
