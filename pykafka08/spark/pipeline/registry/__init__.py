"""Values in the wire format of Confluent's schema registry: Avro, Protobuf and JSON Schema.

    client        the registry's HTTP API: schemas by id, with the schemas that they refer to
    wire_format   magic byte, schema id, and Protobuf's message indexes
    avro, protobuf, json_schema   a value of a schema as JSON text
    decoding      the column of Spark that calls them

Needs the extra ``registry``.
"""
