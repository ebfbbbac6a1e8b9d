"""Tables of a pipeline: Delta tables whose Parquet files Spark's executors write, and whose commits the driver makes.

    storage      the address of a table, and its files
    model        commits, files and what they come to
    log          commits as the pipeline sees them, from ``_delta_log``
    statistics   what Parquet footers tell of a file
    table        reading a table's state, and committing to it
    position     offsets of streams, and where a batch with limits ends
    rows         DataFrames into tables, and back
    stream       a table's commits as a stream, in Spark

Each commit names the query and the batch that it is of as an application transaction, so that a batch that is replayed
commits nothing.
"""
