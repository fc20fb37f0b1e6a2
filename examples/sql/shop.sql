-- The producer's own table.
CREATE TABLE orders (id text PRIMARY KEY, total integer NOT NULL);
