SELECT event_id, position, received_at FROM inbox
WHERE consumer = ?1 AND event_id > ?2
ORDER BY event_id LIMIT ?3
