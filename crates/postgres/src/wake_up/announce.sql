-- Tells whoever listens that a transaction with new events has committed. Once per transaction, whatever it wrote:
-- the server drops repeated notifications of one transaction.
--
-- Opt-in, since a transaction that notifies takes a lock of the whole cluster at its commit (src/backend/commands/async.c:
-- PreCommit_Notify), so that such commits are written one after the other.
CREATE OR REPLACE FUNCTION @.outbox_announce() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_notify('postbox', '');
    RETURN NULL;
END
$$;

DROP TRIGGER IF EXISTS outbox_announce ON @.outbox;
CREATE TRIGGER outbox_announce AFTER INSERT ON @.outbox
    FOR EACH STATEMENT EXECUTE FUNCTION @.outbox_announce();
