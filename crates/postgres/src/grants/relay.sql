-- Runs `postbox relay` and every operator's command. Cannot write events, and changes none: it may only prune them.
GRANT SELECT ON @.outbox_schema, @.outbox_arrival, @.outbox_status, @.outbox_exceptions, @.outbox_oldest_pending,
    @.outbox_health TO @role;
GRANT SELECT, DELETE ON @.outbox, @.inbox TO @role;
GRANT SELECT, UPDATE ON @.outbox_lane, @.outbox_shard TO @role;
GRANT SELECT, INSERT, DELETE ON @.outbox_pending TO @role;
GRANT SELECT, INSERT, UPDATE ON @.outbox_retention TO @role;
GRANT SELECT, INSERT, UPDATE, DELETE ON @.outbox_delivery, @.outbox_relay TO @role;
GRANT SELECT, DELETE ON @.outbox_report TO @role;
GRANT SELECT, INSERT, UPDATE, DELETE ON @.outbox_destination, @.outbox_destination_secret TO @role;
GRANT SELECT ON @.outbox_destination_version TO @role;
GRANT SELECT ON SEQUENCE @.outbox_id_seq TO @role;
GRANT EXECUTE ON FUNCTION
    @.outbox_heartbeat(uuid, text, bigint, integer, boolean, boolean),
    @.outbox_heartbeat(uuid, text, bigint, integer, boolean, boolean, bigint, jsonb),
    @.outbox_disable_destination, @.outbox_enable_destination, @.outbox_add_destination,
    @.outbox_add_destination_secret, @.outbox_remove_destination, @.outbox_discard_removed,
    @.outbox_free_shards, @.outbox_hand_back, @.outbox_leave,
    @.outbox_horizon, @.outbox_scan, @.outbox_load, @.outbox_refill, @.outbox_due,
    @.outbox_restore_heads, @.outbox_settle, @.outbox_begin,
    @.outbox_select_deliveries, @.outbox_lock_shards, @.outbox_replay, @.outbox_discard,
    @.outbox_prunable, @.outbox_prune, @.outbox_report_rank, @.outbox_remember_retention, @.inbox_prune
    TO @role;
