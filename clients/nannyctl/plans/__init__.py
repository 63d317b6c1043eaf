"""What is to be done, and how far it is. Decisions only: no I/O."""
