-- One event of each type, each type's aggregates being its own.
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
SELECT 'order', event_type || '-' || $2::bigint, event_type, json_build_object('note', repeat('n', 230))
FROM unnest($1::text[]) AS event_type
