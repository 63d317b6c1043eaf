"""What HQ says, followed as a client: one part per location, and what all of them make of it for the ledger."""
