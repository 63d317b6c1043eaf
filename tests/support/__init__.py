"""What several folders of tests share, by what it stands for.

- Values: `value_strategies`, `revision_strategies`, `status_strategies`, `instance_strategies` (hypothesis),
  `arbitrary_messages`, `seeded_faults`; `sample_instances` (a few by hand), `cache_entries`, `status_record`,
  `certificates`, `token_issuer`, `rights_requests`.
- Stores: `stores` (memory and every etcd, for contracts), `etcd*` (real ones), `faulty_store`, `fenced_store`,
  `mirrored_store`, `store_link`, `store_parts`, `backups`; `store_histories` and what must come of them:
  `reference_instances`, `reference_registry`.
- Replicas: `in_process_replica`, `stepped_replica`, `cache_and_tracker` in the test's own loop; `replicas`,
  `secured`, `secured_gateway` as processes or servers; `simulation` with `simulated_agents` and `outages`, all in
  `virtual_time`.
- Runs for the checker: `recorded_run` with `recording*`; `generated_history`; `seeded_bugs` that the checker must
  find.
- Gateways: `pictures` (what is known, said by hand), `gateway_process` (an HQ over memory and gateways before it).
- Controllers: `controllers` (a small one on the kit).
- Wire: `faulty_proxy`, `reserved_port`, `h2_peer`, `connect_calls`, `wire_format`, `errors`, `watch_*`,
  `metrics_scrape`.
"""
