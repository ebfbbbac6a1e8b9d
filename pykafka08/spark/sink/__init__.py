"""Rows of Spark written to Kafka: batch, stream, and streams exactly once."""
