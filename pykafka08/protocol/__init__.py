"""Bytes to messages and back: declarations, their compiler, headers, framing and version negotiation.  No I/O, no clock."""
