-- Everything that happens to leases, in one order.
CREATE TABLE story (id bigserial PRIMARY KEY, what text NOT NULL, relay uuid);

CREATE FUNCTION tell() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_TABLE_NAME = 'outbox_relay' THEN
        INSERT INTO public.story (what, relay)
        VALUES (CASE TG_OP WHEN 'INSERT' THEN 'joined' ELSE 'renewed' END, NEW.relay);
    ELSIF NEW.owner IS NULL THEN
        INSERT INTO public.story (what, relay) VALUES ('handed back', OLD.owner);
    ELSE
        INSERT INTO public.story (what, relay) VALUES ('taken', NEW.owner);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER tell AFTER INSERT OR UPDATE ON outbox_relay FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER tell AFTER UPDATE OF owner ON outbox_shard FOR EACH ROW EXECUTE FUNCTION tell();
