"""The ZooKeeper side of old clusters: layout, bridge to kazoo, consumers, administration."""
