"""What to say about a keyword argument that is no setting: the right name, or what there is in its place.

Here: the names that users of other clients type.  The settings themselves are ``config``'s and ``group.settings``'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches

__all__ = ["hint"]

BYTES_ALONE = "keys and values are bytes: encode and decode them in the application"
ASKED = "not needed: each broker is asked; broker_version is a hint"
OWN_LOOP = "not needed: a client belongs to the event loop it is entered in"

OTHER_NAMES = {
    "auto_commit": "enable_auto_commit",
    "bootstrap_server": "bootstrap_servers",
    "brokers": "bootstrap_servers",
    "compression": "compression_type",
    "compression_codec": "compression_type",
    "group": "group_id",
    "hosts": "bootstrap_servers",
    "idempotence": "enable_idempotence",
    "linger": "linger_ms",
    "max_batch_size": "batch_size",
    "max_message_bytes": "max_request_size",
    "max_wait_time": "fetch_max_wait_ms",
    "metadata_broker_list": "bootstrap_servers",
    "rebalance_timeout_ms": "max_poll_interval_ms",
    "transaction_id": "transactional_id",
}
"""The same under another name."""

IN_THEIR_PLACE = {
    "api_version": ASKED,
    "api_version_auto_timeout_ms": ASKED,
    "consumer_timeout_ms": "give getone(timeout=) or getmany(timeout=)",
    "key_deserializer": BYTES_ALONE,
    "key_serializer": BYTES_ALONE,
    "loop": OWN_LOOP,
    "max_poll_records": "give getmany(max_records=)",
    "rebalance_listener": "give Consumer(listener=)",
    "retries": "delivery_timeout_ms bounds them",
    "topic": "topics are positional: Consumer('a', 'b', ...)",
    "topics": "topics are positional: Consumer('a', 'b', ...)",
    "value_deserializer": BYTES_ALONE,
    "value_serializer": BYTES_ALONE,
}
"""Not a setting here."""


def hint(name: str, known: Collection[str], shown: Callable[[str], str] = str) -> str | None:
    """What may have been meant by ``name``, which is none of the ``known``; None if nobody can guess.

    ``shown`` gives a setting's name the form in which users write it.
    """
    # Java's own spelling, out of a mapping, is the commonest one.
    name = name.lower().replace(".", "_").replace("-", "_")
    meant = name if name in known else OTHER_NAMES.get(name)
    if meant is None or meant not in known:
        if name in IN_THEIR_PLACE:
            return IN_THEIR_PLACE[name]
        meant = next(iter(get_close_matches(name, sorted(known), 1, 0.75)), None)
    return f"did you mean {shown(meant)}?" if meant else None
