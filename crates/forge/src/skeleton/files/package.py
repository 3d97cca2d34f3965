"""The package that holds this project's skills."""
