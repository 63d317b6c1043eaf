"""The commands. Each file is imported when its command is used."""
