-- Writes events, by INSERT or by the function; everything else happens in triggers, with the owner's rights.
-- RETURNING event_id and ON CONFLICT (event_id) read that column and no other.
GRANT INSERT, SELECT (event_id) ON @.outbox TO @role;
GRANT EXECUTE ON FUNCTION @.outbox_enqueue TO @role;
