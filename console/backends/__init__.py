"""The servers that the console is a client of: HQ or a federation gateway, CMS, Nanny, Wall-E; each may be left out."""
