"""Where work runs: threads in this process, or a Dask cluster."""
