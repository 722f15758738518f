"""Learn distances with decision forests, out of core, on Dask."""
