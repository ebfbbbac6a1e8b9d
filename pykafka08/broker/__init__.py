"""The embedded broker: a real TCP server in pure Python that plays any release from 0.8.0 to 4.3, in memory."""
