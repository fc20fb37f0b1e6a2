INSERT INTO outbox_report (
    external_id, status, reported_at, received_at, outbox_id, attempt, error_code, error)
VALUES (:external_id, :status, :reported_at, :now, :outbox_id, :attempt, :error_code, :error)
ON CONFLICT DO NOTHING
