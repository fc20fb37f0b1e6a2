-- Looks at everything but what events say: `postbox status`, `shards`, `events`, `dead-letters list`, `reconcile`.
GRANT SELECT (id, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, created_at, deliver_after,
    expires_at, lane_id, shard, payload_bytes) ON @.outbox TO @role;
GRANT SELECT ON @.outbox_schema, @.outbox_lane, @.outbox_pending, @.outbox_delivery, @.outbox_relay, @.outbox_shard,
    @.outbox_retention, @.outbox_status, @.outbox_exceptions, @.outbox_oldest_pending, @.outbox_health,
    @.outbox_report, @.inbox, @.inbox_sequence TO @role;
GRANT EXECUTE ON FUNCTION @.outbox_report_rank TO @role;
-- Settings may hold tokens, in a URL or a request header; without them `postbox destinations` cannot be used.
GRANT SELECT (name, disabled_at, disabled_reason, created_at, updated_at) ON @.outbox_destination TO @role;
GRANT SELECT (destination, created_at, expires_at) ON @.outbox_destination_secret TO @role;
GRANT SELECT ON @.outbox_destination_version TO @role;
