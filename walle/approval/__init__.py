"""Leave from CMSs: their protocol, the combined verdict of several, and the default one."""
