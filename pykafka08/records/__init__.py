"""Bytes <-> records, in all three formats of Kafka's log (magic 0, 1 and 2).

    record        Record, NewRecord, TopicPartition: what people hold
    reader        read_batches: the bytes of a Fetch answer -> batches of records
    writer        encode_batch: columns -> the bytes of a Produce request
    batch         magic 2 (Kafka 0.11 and later): layout, making records; batch_packing: the way there,
                  batch_writer: the same where it is compiled
    message_set   magic 0 and 1 (Kafka 0.8 to 0.10)
    rewrite       what a broker does to a set: numbering, conversion between formats
    compression   gzip, snappy, lz4, zstd under one table, unpacked under a cap
    checksums     CRC-32 and CRC-32C

No I/O and no clock.  Requests and responses live in ``pykafka08.protocol``; they carry these bytes as they are.
"""
