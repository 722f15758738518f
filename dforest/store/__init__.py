"""What is on disk: datasets, matrices, graphs, models, receipts; whole or absent, never guessed."""
