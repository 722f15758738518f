"""The ``dforest`` command: parse, call one function, print; no arithmetic here."""

from dforest.cli.main import main

__all__ = ["main"]
