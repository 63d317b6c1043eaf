"""Leave from CMS's: their protocol, what several of them say together, and the default one."""
