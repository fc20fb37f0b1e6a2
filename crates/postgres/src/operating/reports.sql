SELECT r.external_id, r.attempt, r.status, r.reported_at,
    CASE WHEN r.error_code IS NOT NULL THEN concat_ws(' ', r.error_code, r.error) END
FROM @.outbox_report r
WHERE r.outbox_id = $1
    OR r.outbox_id IS NULL AND r.external_id IN (
        SELECT d.external_id FROM @.outbox_delivery d WHERE d.outbox_id = $1 AND d.external_id IS NOT NULL)
ORDER BY r.reported_at, @.outbox_report_rank(r.status)
