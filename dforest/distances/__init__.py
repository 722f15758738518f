"""Distances between objects: a table of named ones, and Python callables, block by block."""
