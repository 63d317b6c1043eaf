"""Whether the lines of an audit log are those that were written. `serving/auth` writes them."""
