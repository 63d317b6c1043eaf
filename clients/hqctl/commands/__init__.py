"""The commands of hqctl, a file each."""
