"""What HQ is asked and told, and what became of it."""
