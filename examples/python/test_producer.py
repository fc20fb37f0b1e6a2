"""python -m unittest, with DATABASE_URL naming a migrated database with the table of orders."""

import os
import unittest

import psycopg

from producer import confirm_order


class Rollback(unittest.TestCase):
    def setUp(self) -> None:
        self.connection = psycopg.connect(os.environ["DATABASE_URL"])
        self.addCleanup(self.connection.close)

    def count(self, order_id: str) -> tuple[int, int]:
        """Orders and events of this id."""
        with psycopg.connect(os.environ["DATABASE_URL"]) as other:
            return other.execute(
                "SELECT (SELECT count(*) FROM orders WHERE id = %(id)s),"
                " (SELECT count(*) FROM outbox WHERE aggregate_id = %(id)s)",
                {"id": order_id},
            ).fetchone()

    def test_a_rollback_removes_order_and_event(self) -> None:
        with self.connection.cursor() as cursor:
            confirm_order(cursor, "python-rolled-back", 1)
        self.connection.rollback()
        self.assertEqual(self.count("python-rolled-back"), (0, 0))

    def test_a_commit_keeps_both(self) -> None:
        with self.connection.cursor() as cursor:
            confirm_order(cursor, "python-kept", 1)
            self.assertEqual(self.count("python-kept"), (0, 0), "seen before the commit")
        self.connection.commit()
        self.assertEqual(self.count("python-kept"), (1, 1))

    def test_an_exception_inside_the_block_removes_both(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            with self.connection.transaction(), self.connection.cursor() as cursor:
                confirm_order(cursor, "python-raised", 1)
                raise ZeroDivisionError
        self.assertEqual(self.count("python-raised"), (0, 0))


if __name__ == "__main__":
    unittest.main()
