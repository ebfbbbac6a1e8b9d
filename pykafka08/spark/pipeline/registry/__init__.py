"""Values in the wire format of Confluent's schema registry: Avro, Protobuf and JSON Schema.

    client        the registry's HTTP API: schemas by id, with their references
    wire_format   magic byte, schema id, and Protobuf's message indexes
    avro, protobuf, json_schema   readers of values, which return JSON texts
    decoding      a column of Spark that calls the readers

Needs the extra ``registry``.
"""
