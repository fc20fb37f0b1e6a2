-- The shop's own data. steps counts what was done for an order: confirmed, packed, shipped.
CREATE TABLE orders (
    number      INTEGER PRIMARY KEY,
    total_cents INTEGER NOT NULL,
    steps       INTEGER NOT NULL
) STRICT;
