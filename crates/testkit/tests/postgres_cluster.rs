//! Private clusters: fresh databases, stops and starts, and no server left behind.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postbox_testkit::postgres::{ClusterOptions, PgCluster};

const ROLE_VARIABLE: &str = "POSTBOX_TESTKIT_KILL_ME";

#[test]
fn every_test_gets_an_empty_database_of_its_own() {
    let (one, two) = (PgCluster::shared().database(), PgCluster::shared().database());
    one.sql("CREATE TABLE orders (id int)");
    assert_ne!(one.name(), two.name());
    assert_eq!(two.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    assert_eq!(one.sql("SHOW wal_level"), "logical");
    assert_eq!(one.sql("SHOW fsync"), "off");
}

#[test]
fn a_database_can_be_copied_from_a_prepared_one() {
    let cluster = PgCluster::shared();
    let prepared = cluster.database();
    prepared.sql("CREATE TABLE orders AS SELECT 7 AS id");
    let template = prepared.keep();
    assert_eq!(cluster.database_from(&template).sql("SELECT id FROM orders"), "7");
}

#[test]
fn committed_rows_survive_a_stop_and_an_immediate_restart() {
    let cluster = PgCluster::start_new(&ClusterOptions::new().setting("application_name", "it's me"));
    let database = cluster.database();
    database.sql("CREATE TABLE orders AS SELECT 7 AS id");
    let port = cluster.port();
    cluster.stop();
    cluster.start();
    assert_eq!(cluster.port(), port);
    database.sql("INSERT INTO orders VALUES (8)");
    cluster.restart_immediate();
    assert_eq!(database.sql("SELECT sum(id) FROM orders"), "15");
}

#[test]
fn a_durable_cluster_writes_through_to_the_disk() {
    let cluster = PgCluster::start_new(&ClusterOptions::new().durable());
    assert_eq!(cluster.sql("postgres", "SHOW fsync"), "on");
    assert_eq!(cluster.sql("postgres", "SHOW synchronous_commit"), "on");
}

#[test]
fn a_dropped_cluster_leaves_no_server_and_no_folder() {
    let cluster = PgCluster::start_new(&ClusterOptions::new());
    let (pid, folder) = (cluster.server_pid().unwrap(), cluster.socket_folder().to_owned());
    assert!(is_running(pid));
    drop(cluster);
    assert!(!is_running(pid));
    assert!(!folder.exists());
}

#[test]
fn a_killed_test_process_leaves_no_server_and_no_folder() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_that_waits_to_be_killed", "--nocapture"])
        .env(ROLE_VARIABLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let mut byte = [0];
    while !told.ends_with("ready\n") && stdout.read(&mut byte).unwrap() == 1 {
        told.push(char::from(byte[0]));
    }
    let line = told.lines().find_map(|line| line.split("cluster ").nth(1)).unwrap();
    let (pid, folder) = line.split_once(' ').unwrap();
    let pid = pid.parse().unwrap();
    assert!(is_running(pid));
    child.kill().unwrap();
    child.wait().unwrap();

    let deadline = Instant::now() + Duration::from_secs(30);
    while is_running(pid) || Path::new(folder).exists() {
        assert!(Instant::now() < deadline, "server {pid} or {folder} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Not a test of its own: the process that the test above kills.
#[test]
fn a_process_that_waits_to_be_killed() {
    if std::env::var_os(ROLE_VARIABLE).is_none() {
        return;
    }
    let cluster = PgCluster::shared();
    println!("\ncluster {} {}\nready", cluster.server_pid().unwrap(), cluster.socket_folder().display());
    loop {
        std::thread::park();
    }
}

fn is_running(pid: u32) -> bool {
    // A zombie has ended; in a container nobody may be there to collect it.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}
