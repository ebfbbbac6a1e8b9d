"""The consumer of old groups, from the inside out: settings, offsets, streams, reading, membership."""
