//! `postbox grants`: connected as each role, what is allowed and what is refused.

use postbox_testkit::postgres::{Database, PgCluster};

use crate::bench::Bench;
use crate::receiver::Receiver;

/// A migrated database whose five roles can log in. Roles belong to the whole cluster, so they have the database's name
/// in theirs.
struct Roles {
    bench: Bench,
    database: Database<'static>,
}

impl Roles {
    fn granted() -> Self {
        let database = PgCluster::shared().database();
        let roles = Self { bench: Bench::on(database.url()), database };
        roles.bench.run(&["migrate"]).succeeded();
        for duty in ["producer", "relay", "reader", "consumer", "reporter"] {
            let name = roles.name(duty);
            roles.bench.run(&["grants", duty, "--to", &name, "--apply"]).succeeded().says(&[&name, duty]);
            roles.database.sql(&format!("ALTER ROLE {name} LOGIN"));
        }
        roles
    }

    fn name(&self, duty: &str) -> String {
        format!("{duty}_{}", self.database.name())
    }

    fn url(&self, duty: &str) -> String {
        format!("postgres://{}@{}", self.name(duty), self.database.url().split_once('@').unwrap().1)
    }

    /// Runs statements as a role; the error's SQLSTATE when one is refused.
    fn try_as(&self, duty: &str, statements: &str) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&self.url(duty), tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let answer = client.batch_execute(statements).await;
            drop(client);
            connection.await.unwrap().unwrap();
            answer.map_err(|error| error.code().unwrap().code().to_owned())
        })
    }

    #[track_caller]
    fn allowed(&self, duty: &str, statements: &[&str]) {
        for statement in statements {
            assert_eq!(self.try_as(duty, statement), Ok(()), "{duty}: {statement}");
        }
    }

    /// Insufficient privilege, and nothing else, stops each of these.
    #[track_caller]
    fn refused(&self, duty: &str, statements: &[&str]) {
        for statement in statements {
            assert_eq!(self.try_as(duty, statement), Err("42501".to_owned()), "{duty}: {statement}");
        }
    }
}

const INSERT: &str = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers)
    VALUES ('order', '1', 'order.confirmed', '{\"total\": 12}', '{\"tenant\": \"acme\"}') RETURNING event_id";
const ENQUEUE: &str = "SELECT outbox_enqueue('order', '1', 'order.shipped', '{}')";
const ACCEPT: &str = "SELECT inbox_accept('billing', '0198f0c2-7d2e-7c31-9d60-0d6f3f0a51c4')";

#[test]
fn a_producer_writes_events_and_sees_none() {
    let roles = Roles::granted();
    roles.allowed(
        "producer",
        &[
            INSERT,
            ENQUEUE,
            "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
             VALUES ('0198f0c2-7d2e-7c31-9d60-0d6f3f0a51c4', 'order', '1', 'order.paid', '{}')
             ON CONFLICT (event_id) DO NOTHING",
        ],
    );
    roles.refused(
        "producer",
        &[
            "SELECT payload FROM outbox",
            "UPDATE outbox SET payload = '{}'",
            "DELETE FROM outbox",
            "TRUNCATE outbox",
            "SELECT FROM outbox_lane",
            "DELETE FROM outbox_pending",
            "INSERT INTO outbox_pending VALUES (1, 1, 1)",
            "SELECT FROM outbox_delivery",
            "SELECT outbox_leave(gen_random_uuid())",
            "SELECT nextval('outbox_id_seq')",
            ACCEPT,
        ],
    );
}

#[test]
fn a_reporter_takes_reports_in_and_sees_nothing() {
    let roles = Roles::granted();
    let take_in = "SELECT * FROM outbox_take_in_reports('{support}', '{failed}', '{wamid.A}', '{failed}', '{2026-01-31Z}',
        '{NULL}', '{NULL}', '{131026}', '{undeliverable}')";
    roles.allowed("reporter", &[take_in]);
    assert_eq!(roles.database.sql("SELECT external_id FROM outbox_report"), "wamid.A");
    roles.refused(
        "reporter",
        &[
            INSERT,
            ENQUEUE,
            ACCEPT,
            "SELECT FROM outbox",
            "SELECT FROM outbox_delivery",
            "SELECT FROM outbox_report",
            "DELETE FROM outbox_report",
            "SELECT outbox_lock_shards('{1}')",
        ],
    );
    for duty in ["producer", "consumer", "reader"] {
        roles.refused(duty, &[take_in]);
    }
}

#[test]
fn a_relay_delivers_and_operates_and_writes_no_event() {
    let (roles, receiver) = (Roles::granted(), Receiver::start());
    roles.bench.write_destination(&receiver.url(), "");
    roles.database.sql(&format!("{INSERT}; {ENQUEUE}; {ACCEPT}"));
    for args in [
        &["relay", "--once"][..],
        &["status"],
        &["shards"],
        &["events", "list"],
        &["dead-letters", "list"],
        &["replay", "--all"],
        &["relay", "--once"],
        &["prune", "--older-than", "0s"],
        &["inbox", "prune", "--older-than", "0s"],
        &["destinations", "add", "acme", "--url", "https://acme.example/"],
        &["destinations", "update", "acme", "--timeout", "5s"],
        &["destinations", "rotate-secret", "acme"],
        &["destinations", "disable", "acme"],
        &["destinations", "enable", "acme"],
        &["destinations", "disable", "billing"],
        &["destinations", "list"],
        &["destinations", "show", "acme"],
        &["destinations", "remove", "acme", "--discard"],
    ] {
        roles.bench.run(&[args, &["--database-url", &roles.url("relay")]].concat()).succeeded();
    }
    assert_eq!(receiver.received().len(), 4);
    assert_eq!(roles.database.sql("SELECT count(*) FROM outbox"), "0");
    roles.refused(
        "relay",
        &[
            INSERT,
            ENQUEUE,
            ACCEPT,
            "UPDATE outbox SET payload = '{}'",
            "TRUNCATE outbox",
            "DELETE FROM outbox_lane",
            "DELETE FROM outbox_shard",
            "INSERT INTO inbox (consumer, event_id) VALUES ('billing', gen_random_uuid())",
            "DELETE FROM outbox_schema",
            "UPDATE outbox_destination_version SET version = 0",
            "DROP TABLE outbox",
        ],
    );
}

#[test]
fn a_reader_sees_everything_but_what_events_say() {
    let (roles, receiver) = (Roles::granted(), Receiver::start());
    roles.bench.write_destination(&receiver.url(), "");
    roles.database.sql(&format!("{INSERT}; {ACCEPT}"));
    let event = roles.database.sql("SELECT event_id FROM outbox");
    roles.bench.run(&["relay", "--once"]).succeeded();
    let run = |args: &[&str]| roles.bench.run(&[args, &["--database-url", &roles.url("reader")]].concat());
    for args in [
        &["status"][..],
        &["shards"],
        &["events", "list"],
        &["events", "show", &event],
        &["dead-letters", "list"],
    ] {
        run(args).succeeded();
    }
    run(&["events", "show", &event, "--payload"]).ended_with(5).complains(&["postbox grants"]);
    for args in [
        &["relay", "--once"][..],
        &["replay", "--all", "--yes"],
        &["prune", "--older-than", "0s"],
        &["inbox", "prune", "--older-than", "0s"],
        &["destinations", "list"],
        &["destinations", "disable", "billing"],
    ] {
        run(args).ended_with(5);
    }
    roles.allowed(
        "reader",
        &[
            "SELECT FROM inbox",
            "SELECT FROM outbox_health",
            "SELECT event_id FROM outbox",
            "SELECT name, disabled_reason FROM outbox_destination",
            "SELECT destination, expires_at FROM outbox_destination_secret",
        ],
    );
    roles.refused(
        "reader",
        &[
            INSERT,
            ENQUEUE,
            ACCEPT,
            "SELECT payload FROM outbox",
            "SELECT headers FROM outbox",
            "SELECT settings FROM outbox_destination",
            "SELECT secret FROM outbox_destination_secret",
            "DELETE FROM inbox",
        ],
    );
}

#[test]
fn a_consumer_accepts_events_and_can_neither_look_nor_forget() {
    let roles = Roles::granted();
    roles
        .allowed("consumer", &[ACCEPT, "SELECT inbox_accept('billing', gen_random_uuid(), 'order', '1', 1)"]);
    roles.refused(
        "consumer",
        &[
            "SELECT FROM inbox",
            "INSERT INTO inbox (consumer, event_id) VALUES ('billing', gen_random_uuid())",
            "DELETE FROM inbox",
            "UPDATE inbox_sequence SET last_seq = 0",
            "SELECT inbox_prune(0, 1, 0)",
            "SELECT event_id FROM outbox",
            INSERT,
            ENQUEUE,
        ],
    );
}

#[test]
fn an_inbox_of_its_own_needs_only_the_consumers_grants() {
    let database = PgCluster::shared().database();
    let bench = Bench::on(database.url());
    let role = format!("consumer_{}", database.name());
    bench.run(&["migrate", "--inbox", "--schema", "in box"]).succeeded();
    for _ in 0..2 {
        bench.run(&["grants", "consumer", "--to", &role, "--apply", "--schema", "in box"]).succeeded();
    }
    assert_eq!(
        database
            .sql(&format!("SET ROLE {role}; SELECT \"in box\".inbox_accept('billing', gen_random_uuid())")),
        "first"
    );
}

#[test]
fn what_is_printed_is_what_is_applied() {
    let database = PgCluster::shared().database();
    let bench = Bench::on(database.url());
    bench.run(&["migrate"]).succeeded();
    let role = format!("printed_{}", database.name());
    database.sql(&bench.run(&["grants", "producer", "--to", &role]).succeeded().out);
    database.sql(&format!("SET ROLE {role}; {ENQUEUE}"));
    bench.run(&["grants"]).succeeded().says(&[
        "postbox_producer",
        "postbox_relay",
        "postbox_reader",
        "postbox_consumer",
        "postbox_reporter",
    ]);
    bench.run(&["grants", "--to", "shop"]).ended_with(2).complains(&["postbox grants producer --to shop"]);
    Bench::migrated().run(&["grants"]).ended_with(2).complains(&["no roles"]);
}

/// Whoever adds a table or a function has to say who may use it.
#[test]
fn everything_in_the_schema_is_granted_to_somebody_or_used_with_its_owners_rights_alone() {
    let roles = Roles::granted();
    let ungranted = roles.database.sql(&format!(
        "SELECT c.relname FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
            AND NOT EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee <> c.relowner)
         UNION ALL
         SELECT p.proname FROM pg_proc p
         WHERE p.pronamespace = 'public'::regnamespace
            AND NOT EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = ANY (ARRAY['{}', '{}', '{}', '{}']::regrole[]))
         ORDER BY 1",
        roles.name("producer"),
        roles.name("relay"),
        roles.name("consumer"),
        roles.name("reporter"),
    ));
    let expected = [
        "outbox_after_insert",
        "outbox_before_insert",
        "outbox_headers_fit",
        "outbox_is_in_doubt",
        "outbox_note_destination_update",
        "outbox_raise_destination_version",
        "outbox_refuse",
        "outbox_take_in_report",
    ];
    assert_eq!(ungranted.lines().collect::<Vec<_>>(), expected);
    let public = roles.database.sql(
        "SELECT count(*) FROM pg_proc p, aclexplode(p.proacl) a
         WHERE p.pronamespace = 'public'::regnamespace AND a.grantee = 0",
    );
    assert_eq!(public, "0", "a function that everybody may call");
}
