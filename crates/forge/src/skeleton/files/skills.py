"""One module for each skill."""
