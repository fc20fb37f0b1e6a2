-- Takes the announcement of new events out again.
DROP TRIGGER IF EXISTS outbox_announce ON @.outbox;
DROP FUNCTION IF EXISTS @.outbox_announce();
