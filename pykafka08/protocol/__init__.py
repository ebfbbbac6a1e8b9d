"""Bytes to messages and back: declarations, compiler, headers, framing, version negotiation.  No I/O, no clock."""
