"""Everything that a run leaves on disk: formats, writers and readers."""
