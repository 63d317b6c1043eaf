"""Actions: how a service is brought to the automaton's state. Level-triggered: each step looks at HQ again."""
