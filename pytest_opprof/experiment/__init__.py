"""Measurements that compare commits on this machine: base against head, and one commit after another."""
