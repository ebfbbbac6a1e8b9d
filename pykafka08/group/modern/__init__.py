"""The new group protocol (KIP-848), in which the broker assigns; named as Kafka's own coordinator names it."""
