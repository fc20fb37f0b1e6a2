INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers)
SELECT
    coalesce(o.aggregate_type, 'whatsapp.status'), coalesce(o.aggregate_id, :aggregate_id), :event_type,
    json_object(
        'event_id', coalesce(o.event_id, :event_id), 'external_id', :external_id, 'status', :status, 'at', :at,
        'error', json(coalesce(:error, 'null'))),
    :headers
FROM (SELECT 1) LEFT JOIN outbox AS o ON o.event_id = :origin
