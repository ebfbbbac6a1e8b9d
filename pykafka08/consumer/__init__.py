"""Consuming records: positions, fetching, resets, batches and records."""
