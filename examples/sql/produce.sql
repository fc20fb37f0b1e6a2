-- psql -v order_id=4711 -v total=4200 -f produce.sql
\set ON_ERROR_STOP on
BEGIN;
INSERT INTO orders (id, total) VALUES (:'order_id', :total);
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
VALUES ('order', :'order_id', 'order.confirmed', json_build_object('total', :total::integer))
RETURNING event_id;
COMMIT;
