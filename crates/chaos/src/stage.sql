-- The business data: one row for each change, with the event that tells of it.
CREATE TABLE change (event_id uuid PRIMARY KEY, aggregate int NOT NULL);

-- Postbox deletes a relay's row when the relay leaves, or when its lease has run out and another one takes over.
-- The second is what the ledger has to know of.
CREATE TABLE chaos_eviction (relay uuid PRIMARY KEY, label text NOT NULL, at timestamptz NOT NULL);

CREATE FUNCTION chaos_note_eviction() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF OLD.leased_until < clock_timestamp() THEN
        INSERT INTO public.chaos_eviction VALUES (OLD.relay, OLD.label, clock_timestamp());
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER chaos_note_eviction AFTER DELETE ON outbox_relay
    FOR EACH ROW EXECUTE FUNCTION chaos_note_eviction();
