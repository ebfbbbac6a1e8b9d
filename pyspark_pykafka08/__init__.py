"""Lets Spark find the format ``pykafka08`` by itself: it looks for packages whose names begin with ``pyspark_``."""

from pykafka08.spark.data_source import KafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
