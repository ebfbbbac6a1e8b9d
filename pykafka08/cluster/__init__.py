"""One client of one cluster: metadata, routing, a connection per broker and purpose."""
