"""Kinds of objects at the controllers, as clients list and show them. For hqctl, `walle` and the console alike."""
