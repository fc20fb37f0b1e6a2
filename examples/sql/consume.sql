-- psql -v event_id=… -v order_id=4711 -v total=4200 -f consume.sql
\set ON_ERROR_STOP on
BEGIN;
SELECT inbox_accept('billing', :'event_id') = 'first' AS is_first \gset
\if :is_first
INSERT INTO invoice (order_id, total) VALUES (:'order_id', :total);
\else
\echo duplicate
\endif
COMMIT;
