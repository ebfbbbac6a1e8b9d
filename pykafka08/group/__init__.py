"""Consumer groups: membership, assignment of partitions, committed offsets.  The consumer that reads is not here."""
