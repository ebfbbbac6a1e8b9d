"""One module per API that the embedded broker answers; each registers itself."""
