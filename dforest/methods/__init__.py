"""The methods of the papers, one module each, without scikit-learn or files."""
