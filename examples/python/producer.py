"""Confirms an order and tells of it, in one transaction: python producer.py 4711 4200"""

import json
import os
import sys

import psycopg


def confirm_order(cursor: psycopg.Cursor, order_id: str, total: int) -> None:
    """Takes the caller's cursor: the event shares the fate of whatever else that transaction does."""
    cursor.execute("INSERT INTO orders (id, total) VALUES (%s, %s)", (order_id, total))
    cursor.execute(
        "SELECT outbox_enqueue('order', %s, 'order.confirmed', %s::json)",
        (order_id, json.dumps({"total": total})),
    )


if __name__ == "__main__":
    # The block commits at its end, and rolls back when something is raised in it.
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection, connection.cursor() as cursor:
        confirm_order(cursor, sys.argv[1], int(sys.argv[2]))
