"""What follows when offsets of a plan are in Kafka no more: the option ``failOnDataLoss`` of Spark's source."""

from __future__ import annotations

from pykafka08.errors import KafkaError
from pykafka08.logs import library_logger

__all__ = ["FAIL_INSTRUCTIONS", "OTHER_CHECKPOINT", "DataLossError", "report_data_loss"]

log = library_logger("spark")

FAIL_INSTRUCTIONS = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
    "Kafka or the topic may have been deleted before all the data in the topic was processed. If you don't want your "
    'streaming query to fail on such cases, set the source option "failOnDataLoss" to "false".'
)
"""What Spark's own source says, which people search for."""

OTHER_CHECKPOINT = (
    "Nothing is lost in Kafka: give this query a checkpointLocation of its own, or choose the topics again. To go on "
    'without them, set the source option "failOnDataLoss" to "false".'
)
"""Of partitions that are there, and that the options do not choose any more; Spark's connector calls them deleted."""


class DataLossError(KafkaError):
    """Records that a query was to read are lost, and ``failOnDataLoss`` is true."""


def report_data_loss(
    what: str,
    *,
    is_failure: bool,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
    instructions: str = FAIL_INSTRUCTIONS,
) -> None:
    """Raise DataLossError with ``what`` was lost and what to do, or, if that is no failure, log a warning."""
    if is_failure:
        raise DataLossError(f"{what}. {instructions}", topic=topic, partition=partition, offset=offset)
    log.warning("spark.data_loss", what=what, topic=topic, partition=partition, offset=offset)
