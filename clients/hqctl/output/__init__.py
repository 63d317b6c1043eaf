"""The output of hqctl: rows, tables, lines, stories, JSON, and the words in them."""
