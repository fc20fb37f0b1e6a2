// Confirms an order and tells of it, in one transaction: node producer.mjs 4711 4200
import { pathToFileURL } from "node:url";
import pg from "pg";

// Takes the client on which the caller has begun a transaction: the event shares its fate.
export async function confirmOrder(client, orderId, total) {
  await client.query("INSERT INTO orders (id, total) VALUES ($1, $2)", [orderId, total]);
  await client.query("SELECT outbox_enqueue('order', $1, 'order.confirmed', $2::json)", [
    orderId,
    JSON.stringify({ total }),
  ]);
}

// Not pool.query: each of those may go to another connection, and each would commit on its own.
export async function inTransaction(client, work) {
  await client.query("BEGIN");
  try {
    await work(client);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const client = new pg.Client(process.env.DATABASE_URL);
  await client.connect();
  await inTransaction(client, () => confirmOrder(client, process.argv[2], Number(process.argv[3])));
  await client.end();
}
