INSERT INTO outbox (
    event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, deliver_after, expires_at)
VALUES (
    :event_id, :aggregate_type, :aggregate_id, :aggregate_seq, :event_type, :payload, :headers, :deliver_after,
    :expires_at)
ON CONFLICT (event_id) DO NOTHING
