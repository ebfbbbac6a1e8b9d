"""Copying topics from any cluster to any other, exactly once where transactions are, and carrying groups over."""

from pykafka08.mirror.copy_state import GroupMove, MirrorReport, PartitionReport
from pykafka08.mirror.mirror import Mirror
from pykafka08.mirror.plan import TopicPlan

__all__ = ["GroupMove", "Mirror", "MirrorReport", "PartitionReport", "TopicPlan"]
