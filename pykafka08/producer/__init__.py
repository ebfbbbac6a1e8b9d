"""Producing records: partitioners, batches, retries, deliveries."""
