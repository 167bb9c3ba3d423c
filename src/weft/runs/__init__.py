"""The files of a run: formats, writers and readers."""
