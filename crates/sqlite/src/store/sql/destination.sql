SELECT
    (
        SELECT created_at FROM outbox WHERE id = (
            SELECT min(oldest) FROM (
                SELECT (
                    SELECT min(outbox_id) FROM outbox_delivery
                    WHERE destination = :name AND state = kind.column1 AND sent_at IS NULL) AS oldest
                FROM (VALUES ('retry'), ('waiting'), ('held')) AS kind))
    ) AS oldest_created_at,
    (
        -- The latest among the newest deliveries of each kind.
        SELECT last_error FROM (
            SELECT * FROM (
                SELECT last_error, history FROM outbox_delivery
                WHERE destination = :name AND state = 'retry' AND sent_at IS NULL ORDER BY outbox_id DESC LIMIT 100)
            UNION ALL
            SELECT * FROM (
                SELECT last_error, history FROM outbox_delivery
                WHERE destination = :name AND state = 'held' AND sent_at IS NULL ORDER BY outbox_id DESC LIMIT 100)
            UNION ALL
            SELECT * FROM (
                SELECT last_error, history FROM outbox_delivery
                WHERE destination = :name AND state = 'dead' AND sent_at IS NULL ORDER BY outbox_id DESC LIMIT 100))
        WHERE last_error IS NOT NULL
        ORDER BY history ->> '$[#-1].at' DESC
        LIMIT 1
    ) AS last_error
