"""One TCP connection to one broker: transport, framing, correlation, deadlines, the version handshake."""
