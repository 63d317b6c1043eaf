"""Who calls, and whether they may: identities, tickets, certificates, the policy, rules of calls, the audit log."""
