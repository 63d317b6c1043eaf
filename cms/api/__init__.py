"""cms.v1 as tables of methods."""
