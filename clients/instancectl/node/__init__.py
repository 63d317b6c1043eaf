"""All instances of a node under one process, each as if it were alone."""
