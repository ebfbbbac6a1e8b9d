"""Bytes to messages and back: declarations, their compiler, headers, framing, version negotiation.  No I/O, no clock."""
