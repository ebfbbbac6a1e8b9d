"""Administration by the brokers' own API: topics, groups, offsets, settings.  Thin calls, no state.

Not here: administration through ZooKeeper, for clusters whose brokers have no API for it.
"""

from pykafka08.admin.admin import Admin
from pykafka08.admin.values import (
    ConfigEntry,
    GroupDescription,
    GroupListing,
    GroupMember,
    NewTopic,
    TopicDescription,
)

__all__ = ["Admin", "ConfigEntry", "GroupDescription", "GroupListing", "GroupMember", "NewTopic", "TopicDescription"]
