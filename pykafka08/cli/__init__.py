"""The console tools."""
