"""Who calls, and whether they may: identities, tokens, certificates, the policy, rules of calls, the audit log."""
