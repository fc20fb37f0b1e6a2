SELECT r.external_id, r.attempt, r.status, r.reported_at, r.error_code, r.error
FROM outbox_report AS r
WHERE r.outbox_id = :id
   OR r.outbox_id IS NULL AND r.external_id IN (
        SELECT external_id FROM outbox_delivery WHERE outbox_id = :id AND external_id IS NOT NULL)
ORDER BY r.reported_at, CASE r.status WHEN 'sent' THEN 1 WHEN 'failed' THEN 2 WHEN 'delivered' THEN 3 ELSE 4 END
