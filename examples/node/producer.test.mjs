// node --test, with DATABASE_URL naming a migrated database with the table of orders.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { confirmOrder, inTransaction } from "./producer.mjs";

const client = new pg.Client(process.env.DATABASE_URL);
before(() => client.connect());
after(() => client.end());

// Orders and events of this id.
async function count(orderId) {
  const { rows } = await client.query(
    `SELECT (SELECT count(*)::int FROM orders WHERE id = $1) AS orders,
            (SELECT count(*)::int FROM outbox WHERE aggregate_id = $1) AS events`,
    [orderId],
  );
  return rows[0];
}

test("a rollback removes order and event", async () => {
  await client.query("BEGIN");
  await confirmOrder(client, "node-rolled-back", 1);
  assert.deepEqual(await count("node-rolled-back"), { orders: 1, events: 1 });
  await client.query("ROLLBACK");
  assert.deepEqual(await count("node-rolled-back"), { orders: 0, events: 0 });
});

test("an error inside the transaction removes both", async () => {
  const failing = inTransaction(client, async () => {
    await confirmOrder(client, "node-thrown", 1);
    throw new Error("no");
  });
  await assert.rejects(failing, /no/);
  assert.deepEqual(await count("node-thrown"), { orders: 0, events: 0 });
});

test("a commit keeps both", async () => {
  await inTransaction(client, () => confirmOrder(client, "node-kept", 1));
  assert.deepEqual(await count("node-kept"), { orders: 1, events: 1 });
});
