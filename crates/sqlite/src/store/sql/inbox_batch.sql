-- How many rows the next batch looks at, where it ends, and when its youngest was received.
SELECT count(*), coalesce(max(position), ?1), max(received_at)
FROM (SELECT position, received_at FROM inbox WHERE position > ?1 ORDER BY position LIMIT ?2)
