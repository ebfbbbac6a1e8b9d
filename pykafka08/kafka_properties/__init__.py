"""Kafka's client properties, as its Java clients and tools read them, turned into settings of this client.

    tables        which property is honoured, which has no effect and why, which is refused and why
    librdkafka    the same for the names that confluent-kafka has and Kafka has not
    providers     ``${file:...}``, ``${directory:...}`` and ``${env:...}`` in values
    conversion    properties to keyword arguments
    naming        the names of the settings in errors

Secrets become :class:`Secret` as soon as a file is read.  The syntax of files is in ``pykafka08.properties``.
"""

from pykafka08.kafka_properties.conversion import (
    Converted,
    PropertiesSource,
    arguments_from,
    built_from,
    guarded,
    is_secret,
    protected,
    read_client_properties,
    settings_from,
    settings_of,
    typed,
)
from pykafka08.kafka_properties.naming import in_kafkas_names, written_names
from pykafka08.kafka_properties.providers import NOT_NAMED, unresolved

__all__ = [
    "NOT_NAMED",
    "Converted",
    "PropertiesSource",
    "arguments_from",
    "built_from",
    "guarded",
    "in_kafkas_names",
    "is_secret",
    "protected",
    "read_client_properties",
    "settings_from",
    "settings_of",
    "typed",
    "unresolved",
    "written_names",
]
