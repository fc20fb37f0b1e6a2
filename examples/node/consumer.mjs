// Writes an invoice for each confirmed order, once, however often the event comes.
import http from "node:http";
import pg from "pg";
import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { inTransaction } from "./producer.mjs";

const MAX_BODY_BYTES = 4 * 1024 * 1024;

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
// Without a listener, an idle connection that breaks would end the process.
pool.on("error", (error) => console.error(error.message));

// Acts on an event in the caller's transaction, unless it has done so before.
async function receive(client, event) {
  const { rows } = await client.query("SELECT inbox_accept('billing', $1) AS seen", [event.event_id]);
  if (rows[0].seen === "first") {
    await client.query("INSERT INTO invoice (order_id, total) VALUES ($1, $2)", [
      event.aggregate_id,
      event.data.total,
    ]);
  }
}

async function answer(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return 413;
    chunks.push(chunk);
  }
  // Over the raw bytes: a parsed and rewritten body would have another signature.
  const body = Buffer.concat(chunks);
  webhook.verify(body, request.headers);
  const client = await pool.connect();
  try {
    await inTransaction(client, () => receive(client, JSON.parse(body)));
  } finally {
    client.release();
  }
  return 200; // only now: it is committed
}

const server = http.createServer(async (request, response) => {
  try {
    response.writeHead(await answer(request)).end();
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) console.error(error.message);
    // After 500 the sender tries again.
    response.writeHead(error instanceof WebhookVerificationError ? 401 : 500).end();
  }
});
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () =>
  console.log(`listening on http://127.0.0.1:${server.address().port}`),
);
