"""Errors that a group member meets beside those of ``pykafka08.errors``.

KafkaError
└── PartitionRevokedError    a commit for a partition that this member does not, or no longer, own
"""

from __future__ import annotations

from pykafka08.errors import KafkaError

__all__ = ["PartitionRevokedError"]


class PartitionRevokedError(KafkaError):
    """The partition is another member's, or may be: its offset was not committed, and its records come again there."""
