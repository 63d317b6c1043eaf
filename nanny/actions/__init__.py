"""Actions: how a service is brought to where the automaton says. Level-triggered: each step looks at HQ anew."""
