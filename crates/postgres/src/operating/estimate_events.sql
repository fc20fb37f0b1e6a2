-- Events as the last vacuum or analyze saw them; exact while there are few.
SELECT greatest(
    (SELECT c.reltuples::bigint FROM pg_class c WHERE c.oid = (SELECT o.tableoid FROM @.outbox o LIMIT 1)),
    (SELECT count(*) FROM (SELECT FROM @.outbox LIMIT 10000) AS few))
