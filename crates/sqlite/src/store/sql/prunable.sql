SELECT id,
    -- Young ones may be followed by old ones: created_at is the producer's to give.
    created_at < max(:finished_before, :dead_before) AS old,
    CASE
        WHEN created_at >= max(:finished_before, :dead_before) THEN FALSE
        WHEN EXISTS (SELECT 1 FROM outbox_pending AS p WHERE p.shard = e.shard AND p.id = e.id) THEN FALSE
        ELSE (
            SELECT CASE coalesce(max(CASE
                    WHEN state IN ('delivered', 'discarded', 'expired') THEN 1
                    WHEN state IN ('dead', 'unrouted') THEN 2
                    ELSE 3 END), 1)
                WHEN 1 THEN e.created_at < :finished_before
                WHEN 2 THEN e.created_at < :dead_before
                ELSE FALSE END
            FROM outbox_delivery WHERE outbox_id = e.id)
        END AS prunable
FROM outbox AS e
WHERE id > :after
ORDER BY id
LIMIT :limit
