"""Tables of a pipeline: Delta or Iceberg tables.  Spark's executors write the Parquet files, the driver commits them.

    storage      the address of a table, and its files
    model        commits, data files, and the states of a table
    table_log    the interface to the log of a table
    delta_log    the log of a Delta table
    delta_commits  commits as read from ``_delta_log``
    iceberg      the log of an Iceberg table
    notes        a table whose commits are JSON documents
    statistics   Delta's statistics of a file, from its Parquet footer
    column_types changes of a column's type
    table        reading a table's state, and committing to it
    removed      offset ranges of the records that retention has removed
    position     offsets of streams, and the ends of batches with limits
    rows         DataFrames into tables, and back
    stream       a table's commits as a stream, in Spark

Each commit names its query and batch as an application transaction, so that a replayed batch commits nothing.
"""
