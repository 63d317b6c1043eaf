"""The running revision, section by section."""
