"""What HQ is told of each revision, and by whom."""
