"""What pages show, worked out from what servers answered. No I/O."""
