-- Rows of the whole inbox as the last vacuum or analyze saw them; for this consumer and exact while there are few.
SELECT greatest(
    (SELECT c.reltuples::bigint FROM pg_class c WHERE c.oid = (SELECT i.tableoid FROM @.inbox i LIMIT 1)),
    (SELECT count(*) FROM (SELECT FROM @.inbox i WHERE i.consumer = $1 LIMIT 10000) AS few))
