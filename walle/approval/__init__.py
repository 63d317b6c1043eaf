"""Leave from CMSs: their protocol, what several of them say together, and the default one."""
