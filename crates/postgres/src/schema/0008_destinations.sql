-- Destinations kept as data. postbox_core::endpoint describes what the settings may say.
--
-- Anybody with the right to may write these tables, with plain SQL too. Every statement that does raises the version
-- before it touches a row, and holds its row until the transaction ends: writers queue there, so versions become
-- visible in order and complete, and two writers cannot wait for each other's rows.

CREATE TABLE outbox_destination (
    name            text        COLLATE "C" PRIMARY KEY,
    settings        json,
    disabled_at     timestamptz,
    disabled_reason text,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT outbox_destination_name CHECK (name ~ '^[A-Za-z0-9._-]{1,100}$'),
    CONSTRAINT outbox_destination_settings CHECK (
        json_typeof(settings) = 'object' AND octet_length(settings::text) <= 32768),
    CONSTRAINT outbox_destination_reason CHECK (octet_length(disabled_reason) <= 2000),
    -- Programs that read these as calendar dates know the years 1 to 9999 and no infinity.
    CONSTRAINT outbox_destination_disabled_at CHECK (disabled_at BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC'),
    CONSTRAINT outbox_destination_created_at CHECK (created_at BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC'),
    CONSTRAINT outbox_destination_updated_at CHECK (updated_at BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC')
);
COMMENT ON TABLE outbox_destination IS 'Destinations that running relays take over within a second; see postbox destinations.';
COMMENT ON COLUMN outbox_destination.settings IS 'The keys of a [[destination]] in postbox.toml, as JSON. Null: the row only switches a destination of the file off.';
COMMENT ON COLUMN outbox_destination.disabled_at IS 'Since when nothing is sent to it; its events are kept.';

-- Apart, so that whoever may read destinations need not be able to sign in their name.
CREATE TABLE outbox_destination_secret (
    secret_id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    destination     text        COLLATE "C" NOT NULL
        REFERENCES outbox_destination ON UPDATE CASCADE ON DELETE CASCADE,
    secret          text        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz,
    CONSTRAINT outbox_destination_secret_length CHECK (octet_length(secret) BETWEEN 1 AND 512),
    CONSTRAINT outbox_destination_secret_created_at CHECK (created_at BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC'),
    CONSTRAINT outbox_destination_secret_expires_at CHECK (expires_at BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC')
);
CREATE INDEX outbox_destination_secret_destination ON outbox_destination_secret (destination, secret_id DESC);
COMMENT ON COLUMN outbox_destination_secret.secret IS 'Standard Webhooks: whsec_ and base64. Each one in use signs every request.';
COMMENT ON COLUMN outbox_destination_secret.expires_at IS 'Not used from then on; null for never.';

CREATE TABLE outbox_destination_version (
    only_row        boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    version         bigint      NOT NULL
) WITH (fillfactor = 50);
INSERT INTO outbox_destination_version (version) VALUES (1);

CREATE FUNCTION outbox_raise_destination_version() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
AS $$
BEGIN
    UPDATE outbox_destination_version SET version = version + 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER outbox_destination_version
    BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON outbox_destination
    FOR EACH STATEMENT EXECUTE FUNCTION outbox_raise_destination_version();
CREATE TRIGGER outbox_destination_version
    BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON outbox_destination_secret
    FOR EACH STATEMENT EXECUTE FUNCTION outbox_raise_destination_version();

CREATE FUNCTION outbox_note_destination_update() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END
$$;

CREATE TRIGGER outbox_destination_updated BEFORE UPDATE ON outbox_destination
    FOR EACH ROW EXECUTE FUNCTION outbox_note_destination_update();

-- What a relay tells of the destinations that it works with.
ALTER TABLE outbox_relay
    ADD COLUMN destinations_version bigint NOT NULL DEFAULT 0,
    ADD COLUMN blocked jsonb NOT NULL DEFAULT '{"count": 0, "destinations": []}';
COMMENT ON COLUMN outbox_relay.destinations_version IS 'Version of outbox_destination that it works by.';
COMMENT ON COLUMN outbox_relay.blocked IS 'Destinations to which it sends nothing at present, and why.';

-- A heartbeat that tells this too. What has not changed is not written again.
CREATE FUNCTION outbox_heartbeat(
    me uuid, my_label text, ttl_ms bigint, my_in_flight integer, accepting boolean, joined boolean,
    my_destinations bigint, my_blocked jsonb,
    OUT evicted boolean, OUT live integer, OUT shards smallint[], OUT epochs bigint[]
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
BEGIN
    SELECT h.evicted, h.live, h.shards, h.epochs INTO evicted, live, shards, epochs
    FROM outbox_heartbeat(me, my_label, ttl_ms, my_in_flight, accepting, joined) AS h;
    UPDATE outbox_relay r
    SET destinations_version = my_destinations, blocked = my_blocked
    WHERE r.relay = me AND (r.destinations_version <> my_destinations OR r.blocked <> my_blocked);
END
$$;

-- Switches a destination off, one of the configuration file by a row of its own. Tells whether it was on.
CREATE FUNCTION outbox_disable_destination(of_name text, why text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
BEGIN
    -- Looked at first: a relay may say so more than once, and a statement that changes nothing raises the version too.
    PERFORM FROM outbox_destination d WHERE d.name = of_name AND d.disabled_at IS NOT NULL;
    IF FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO outbox_destination AS d (name, disabled_at, disabled_reason)
    VALUES (of_name, clock_timestamp(), why)
    ON CONFLICT (name) DO UPDATE SET disabled_at = clock_timestamp(), disabled_reason = why
    WHERE d.disabled_at IS NULL;
    RETURN FOUND;
END
$$;

-- Switches it on again. Tells whether it was off.
CREATE FUNCTION outbox_enable_destination(of_name text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
BEGIN
    PERFORM FROM outbox_destination d WHERE d.name = of_name AND d.disabled_at IS NOT NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM outbox_destination d WHERE d.name = of_name AND d.settings IS NULL;
    UPDATE outbox_destination d
    SET disabled_at = NULL, disabled_reason = NULL
    WHERE d.name = of_name AND d.disabled_at IS NOT NULL;
    RETURN true;
END
$$;

-- Adds a destination with its first secret. Tells whether there was none of that name.
CREATE FUNCTION outbox_add_destination(of_name text, its_settings json, its_secret text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
BEGIN
    INSERT INTO outbox_destination (name, settings) VALUES (of_name, its_settings) ON CONFLICT DO NOTHING;
    IF FOUND AND its_secret IS NOT NULL THEN
        INSERT INTO outbox_destination_secret (destination, secret) VALUES (of_name, its_secret);
        RETURN true;
    END IF;
    RETURN FOUND;
END
$$;

-- Adds a secret and lets the earlier ones expire. How many are in use then; null when there is no such destination.
-- With more than `at_most` nothing is changed.
CREATE FUNCTION outbox_add_destination_secret(of_name text, new_secret text, keep_ms bigint, at_most integer)
RETURNS integer
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
DECLARE
    ends   timestamptz := clock_timestamp() + keep_ms * interval '1 millisecond';
    in_use integer;
BEGIN
    -- Takes the version's lock, under which nobody else adds one.
    DELETE FROM outbox_destination_secret s WHERE s.destination = of_name AND s.expires_at <= clock_timestamp();
    PERFORM FROM outbox_destination d WHERE d.name = of_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT count(*) + 1 INTO in_use FROM outbox_destination_secret s WHERE s.destination = of_name AND keep_ms > 0;
    IF in_use > at_most THEN
        RETURN in_use;
    END IF;
    UPDATE outbox_destination_secret s
    SET expires_at = ends
    WHERE s.destination = of_name AND coalesce(s.expires_at > ends, true);
    INSERT INTO outbox_destination_secret (destination, secret) VALUES (of_name, new_secret);
    RETURN in_use;
END
$$;

-- Removes a destination with its secrets. The version since which it is gone; null when there was none.
CREATE FUNCTION outbox_remove_destination(of_name text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
BEGIN
    DELETE FROM outbox_destination d WHERE d.name = of_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT v.version FROM outbox_destination_version v);
END
$$;

-- Marks one batch of what is kept for a removed destination as discarded.
CREATE FUNCTION outbox_discard_removed(of_destination text, why text, at_most integer) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '30s'
AS $$
DECLARE
    chosen_ids          bigint[];
    chosen_lanes        bigint[];
    chosen_shards       smallint[];
    chosen_destinations text[];
    changed             bigint;
BEGIN
    SELECT array_agg(c.outbox_id), array_agg(c.lane_id), array_agg(c.shard), array_agg(of_destination)
    INTO chosen_ids, chosen_lanes, chosen_shards, chosen_destinations
    FROM (
        SELECT d.outbox_id, d.lane_id, d.shard
        FROM outbox_delivery d
        WHERE d.state IN ('retry', 'waiting', 'held', 'dead', 'unrouted')
            AND d.destination = of_destination AND d.state <> 'unrouted'
        LIMIT at_most
    ) AS c;
    PERFORM outbox_lock_shards(chosen_shards);

    UPDATE outbox_delivery d
    SET state = 'discarded', next_attempt_at = NULL, last_class = 'removed', last_error = why
    WHERE d.outbox_id = ANY (chosen_ids) AND d.destination = of_destination
        AND d.state IN ('retry', 'waiting', 'held', 'dead');
    GET DIAGNOSTICS changed = ROW_COUNT;
    PERFORM outbox_restore_heads(chosen_lanes, chosen_destinations);
    RETURN changed;
END
$$;

REVOKE ALL ON FUNCTION outbox_raise_destination_version, outbox_note_destination_update,
    outbox_heartbeat(uuid, text, bigint, integer, boolean, boolean, bigint, jsonb),
    outbox_disable_destination, outbox_enable_destination, outbox_add_destination, outbox_add_destination_secret,
    outbox_remove_destination, outbox_discard_removed FROM PUBLIC;
