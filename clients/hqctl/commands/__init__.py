"""The commands of hqctl; related ones share a file."""
