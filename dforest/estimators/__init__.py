"""scikit-learn shells over `dforest.methods`: thin, no mathematics."""
