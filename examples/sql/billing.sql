-- The consumer's own table. Nothing in it prevents a second invoice for an order: the inbox does.
CREATE TABLE invoice (id bigint GENERATED ALWAYS AS IDENTITY, order_id text NOT NULL, total integer NOT NULL);
