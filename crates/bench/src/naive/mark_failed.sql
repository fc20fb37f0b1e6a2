UPDATE naive_outbox
SET status = CASE WHEN attempts >= $2 THEN 'dead' ELSE 'pending' END, locked_until = NULL, last_error = $3
WHERE id = $1
