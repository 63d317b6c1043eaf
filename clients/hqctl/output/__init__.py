"""What hqctl prints: rows, tables, lines, stories, JSON, and the words in them."""
