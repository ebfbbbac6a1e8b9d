"""A complete pipeline: topics of any clusters → bronze → silver → gold, on Spark, each input exactly once.

    settings     the TOML file as a typed model
    durations    lengths of time as Spark writes them
    addresses    addresses of a folder, and [storage] for Spark and deltalake
    stores       small files on disks, object stores and HDFS
    checkpoints  batches of Spark's queries, and what these have read
    tables       Delta or Iceberg tables: commits, state, and a stream of commits
    decoding     raw records to typed rows; rules; what is refused, and why
    duplicates   one row for each business key
    aggregating  windows over event time
    gold_sql     checks of aggregates that are written as SQL
    definitions  settings and types to which the state of an aggregate belongs
    local_check  both for Spark Connect, in another process
    connect      sessions on a Spark Connect server
    replaying    offsets of batches in commits and in checkpoints
    stages       each stage as a query with a checkpoint
    running      stages one after the other, or all at once
    waiting      what lies between the stages
    planning     tasks, records, bytes and expected duration, before a run
    validating   what would end a run, before it
    verifying    proof from offsets and rows
    backfilling  dates anew, with the same functions
    restating    an aggregate computed again from all of silver
    leasing      leases of the processes that write to the folder
    converting   folders of earlier versions made Delta tables
    old_layout   those folders
    compacting   small files of a table made one
    widening     wider types of columns in silver
    retaining    old rows of a table removed
    status       lag, throughput, last batch, by stage and partition
    charts       a run as pictures
    report       a run as a page
    svg          the charts of the page
    guessing     a TOML file from a sample of a topic
    alerts       bounds of lag, age and refused rows
    metrics      batches for Prometheus
    lineage      OpenLineage events

Nothing here is imported by the data source.  ``docs/pipeline.md`` is the guide.
"""
