"""Zarr layouts: data sets, distance matrices, models, and the receipts of finished work."""
