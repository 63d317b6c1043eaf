"""What has to be done, and the progress of it. Decisions only: no I/O."""
