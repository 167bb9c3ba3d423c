"""Reports on runs: an HTML page, terminal output and figures. Reads run folders and trains nothing."""
