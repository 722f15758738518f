"""Job and cluster files, checked before anything runs; one function per step."""
