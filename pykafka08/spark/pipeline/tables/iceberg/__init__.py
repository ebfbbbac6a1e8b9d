"""Iceberg tables, with the package ``pyiceberg``; imported only if ``storage.format`` is ``iceberg``.

    catalogs    catalogs of the settings, their tables and errors
    rest        a REST catalog with time-outs
    files       metadata files of tables, on the stores of a pipeline's folder
    schemas     columns of Spark as columns of Iceberg, and back
    entries     data files as entries of manifests, and back
    log         versions and commits of a table

Spark's executors write Parquet files without field ids, so each table has a name mapping.
"""
