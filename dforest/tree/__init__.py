"""Trees of any kind, grown by one equation: layout, growing, routing, leaf tables."""
