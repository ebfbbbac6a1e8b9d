"""What each kind of ZooKeeper node holds: one frozen dataclass for each, one module for each family.

``X.decode(data, path)`` reads, ``x.encode()`` writes.  Pure: bytes in, bytes out.  Where the nodes lie:
``zookeeper/paths.py``.
"""
