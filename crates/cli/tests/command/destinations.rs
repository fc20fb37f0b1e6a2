//! `postbox destinations`: what people write, what they are told, and what they are never shown.

use crate::bench::Bench;
use crate::receiver::Receiver;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn bench() -> Bench {
    let bench = Bench::migrated();
    bench.write_endpoints("");
    bench.write("secret", SECRET);
    bench
}

fn add(bench: &Bench, name: &str, url: &str, more: &[&str]) {
    bench.run(&[&["destinations", "add", name, "--url", url], more].concat()).succeeded();
}

#[test]
fn an_endpoint_is_added_listed_shown_changed_and_removed() {
    let bench = bench();
    bench.run(&["destinations", "list"]).succeeded().says(&["no destinations"]);
    bench.write("token", "hunter2");
    let added = bench.run(&[
        "destinations",
        "add",
        "acme",
        "--url",
        "http://127.0.0.1:9/hooks?token=hunter2",
        "--event",
        "order.*",
        "--tenant",
        "acme",
        "--secret-header",
        "Authorization=file:token",
        "--rate-limit",
        "100/1s",
        "--attempts",
        "3",
        "--delays",
        "1s,5s",
        "--class",
        "404=rejected",
        "--description",
        "Acme's staging",
    ]);
    let added = added.succeeded().says(&["acme added", "within a second", "secret, shown only now: whsec_"]);
    let secret = added.out.split("now: ").nth(1).unwrap().trim().to_owned();
    bench.run(&["destinations", "list"]).succeeded().says(&[
        "acme",
        "table",
        "http://127.0.0.1:9/hooks?…",
        "order.*",
        "enabled",
    ]);
    for command in [&["destinations", "show", "acme"][..], &["destinations", "show", "acme", "--json"]] {
        let shown =
            bench.run(command).succeeded().says(&["order.*", "404", "Authorization", "Acme's staging"]);
        assert!(!shown.out.contains("hunter2") && !shown.out.contains(&secret), "{}", shown.out);
    }
    bench.run(&["destinations", "update", "acme", "--timeout", "5s", "--unset", "tenant"]).succeeded();
    let shown = bench.run(&["destinations", "show", "acme", "--json"]).succeeded().json();
    assert_eq!((&shown["settings"]["timeout"], &shown["settings"]["tenant"]), (&"5s".into(), &().into()));
    assert_eq!(shown["settings"]["retry"]["delays"], serde_json::json!(["1s", "5s"]), "the rest stays");
    assert_eq!(shown["secrets"].as_array().unwrap().len(), 1);
    bench.run(&["destinations", "remove", "acme"]).succeeded().says(&["acme removed"]);
    bench.run(&["destinations", "list"]).succeeded().says(&["no destinations"]);
}

#[test]
fn programs_add_endpoints_as_json() {
    let bench = bench();
    bench.write(
        "acme.json",
        r#"{"url": "http://127.0.0.1:9/", "events": ["order.*"], "breaker": {"consecutive": 3}}"#,
    );
    let added = bench
        .run(&["destinations", "add", "acme", "--settings", "acme.json", "--tenant", "acme", "--json"])
        .succeeded()
        .json();
    assert!(added["secret"].as_str().unwrap().starts_with("whsec_"));
    assert_eq!((&added["name"], &added["settings"]["tenant"]), (&"acme".into(), &"acme".into()));
    let listed = bench.run(&["destinations", "list", "--json"]).succeeded().json();
    let [acme] = listed["destinations"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(
        (&acme["name"], &acme["source"], &acme["state"]),
        (&"acme".into(), &"table".into(), &"enabled".into())
    );
    let own = bench.run(&[
        "destinations",
        "add",
        "own",
        "--url",
        "http://127.0.0.1:9/",
        "--secret",
        "file:secret",
        "--json",
    ]);
    assert_eq!(own.succeeded().json()["secret"], serde_json::Value::Null, "it is known already");
}

#[test]
fn settings_that_cannot_be_used_are_refused_with_what_is_wrong() {
    let bench = bench();
    let url = "http://127.0.0.1:9/";
    bench.write("bad", "whsec_hunter2!");
    bench.write("short", "whsec_c2hvcnQ=");
    for (args, complaint) in [
        (&["--url", "acme.example/hooks"][..], "has no scheme"),
        (&["--url", "ftp://acme.example/"], "use https:// or http://"),
        (&["--url", "https://me:hunter2@acme.example/"], "user or password"),
        (&["--url", "http://acme.example/"], "https"),
        (&["--url", "https://10.1.2.3/"], "private address"),
        (&["--url", "https://169.254.169.254/latest"], "metadata service"),
        (&["--event", "order.*"], "there is no `url`"),
        (&["--url", url, "--tenant", "a", "--match-header", "tenant=b"], "the tenant is given twice"),
        (&["--url", url, "--timeout", "soon"], "`timeout` is no duration"),
        (&["--url", url, "--timeout", "1h"], "`timeout` must be 100ms to 5m"),
        (&["--url", url, "--concurrency", "0"], "`concurrency` must be a whole number, 1 to 10000"),
        (&["--url", url, "--ordering", "total"], "`ordering` must be one of: lane, none"),
        (&["--url", url, "--class", "404=ignored"], "`classes`"),
        (&["--url", url, "--rate-limit", "fast"], "100/1s"),
        (&["--url", url, "--request-header", "no value"], "a name, =, and a value"),
        (&["--url", url, "--request-header", "Webhook-Id=hunter2"], "`request_headers`"),
        (&["--url", url, "--envelope", "xml"], "`envelope`"),
        (&["--url", url, "--secret", "whsec_hunter2"], "write env:NAME or file:PATH"),
        (&["--url", url, "--secret", "env:NOT_SET_HERE"], "NOT_SET_HERE is not set"),
        (&["--url", url, "--secret", "file:bad"], "base64"),
        (&["--url", url, "--secret", "file:short"], "24 to 64"),
    ] {
        let ended = bench.run(&[&["destinations", "add", "acme"], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {}{}", ended.out, ended.err);
        let ended = ended.complains(&[complaint]);
        assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    }
    bench.write("typo.json", &format!(r#"{{"url": "{url}", "tennant": "acme"}}"#));
    bench
        .run(&["destinations", "add", "acme", "--settings", "typo.json"])
        .ended_with(2)
        .complains(&["no key `tennant`", "did you mean `tenant`?"]);
    bench.write("no.json", "url: x");
    bench
        .run(&["destinations", "add", "acme", "--settings", "no.json"])
        .ended_with(2)
        .complains(&["no JSON"]);
    bench.run(&["destinations", "add", "a b", "--url", url]).ended_with(2).complains(&["1 to 100 letters"]);
    bench.run(&["destinations", "list"]).succeeded().says(&["no destinations"]);
}

#[test]
fn a_name_that_is_taken_or_unknown_is_told() {
    let bench = bench();
    bench.write_endpoints(
        "\n[[destination]]\nname = \"billing\"\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n",
    );
    add(&bench, "acme", "http://127.0.0.1:9/", &[]);
    bench
        .run(&["destinations", "add", "acme", "--url", "http://127.0.0.1:9/"])
        .ended_with(1)
        .complains(&["there is a destination \"acme\" already", "destinations update acme"]);
    for command in ["add", "update", "remove", "rotate-secret"] {
        let mut args = vec!["destinations", command, "billing"];
        if matches!(command, "add" | "update") {
            args.extend(["--url", "http://127.0.0.1:9/"]);
        }
        bench.run(&args).ended_with(2).complains(&["\"billing\" is a destination of the configuration file"]);
    }
    for command in ["show", "disable", "enable", "remove", "test", "rotate-secret"] {
        bench
            .run(&["destinations", command, "acmee"])
            .ended_with(1)
            .complains(&["there is no destination \"acmee\"", "did you mean \"acme\"?"]);
    }
    bench.run(&["destinations", "update", "acme"]).ended_with(2).complains(&["nothing to change"]);
    bench
        .run(&["destinations", "update", "acme", "--unset", "time-out"])
        .ended_with(2)
        .complains(&["there is no key `time_out`", "did you mean `timeout`?"]);
}

#[test]
fn a_mistake_made_in_sql_is_shown_and_can_be_mended() {
    let bench = bench();
    bench
        .sqlite()
        .execute_batch(
            r#"INSERT INTO outbox_destination (name, settings) VALUES ('acme', '{"url": "http://127.0.0.1:9/", "tiemout": "5s"}')"#,
        )
        .unwrap();
    bench.run(&["destinations", "list"]).succeeded().says(&["acme", "unusable", "no key `tiemout`"]);
    bench.run(&["destinations", "test", "acme"]).ended_with(1).complains(&["no key `tiemout`"]);
    bench.run(&["destinations", "update", "acme", "--unset", "tiemout", "--timeout", "5s"]).succeeded();
    bench.run(&["destinations", "list"]).succeeded().says(&["acme", "enabled"]);
}

#[test]
fn a_test_event_is_signed_and_its_answer_told() {
    let (bench, receiver) = (bench(), Receiver::start());
    add(&bench, "acme", &receiver.url(), &["--secret", "file:secret", "--class", "409=delivered"]);
    bench.run(&["destinations", "disable", "acme"]).succeeded();
    let told = bench.run(&["destinations", "test", "acme"]).succeeded().says(&["delivered", "200", " ms"]);
    let request = receiver.wait_for(1).remove(0);
    assert_eq!(
        (&request.body["type"], request.header("webhook-id")),
        (&"postbox.test".into(), Some(request.event_id()))
    );
    assert!(told.out.contains(request.event_id()) && request.is_signed_with(SECRET), "{}", told.out);
    receiver.answer(409);
    bench.run(&["destinations", "test", "acme"]).succeeded();
    receiver.answer(403);
    bench
        .run(&["destinations", "test", "acme"])
        .ended_with(1)
        .says(&["failed (misconfigured)", "403", "noted"])
        .complains(&["not delivered to acme"]);
    let report = bench.run(&["destinations", "test", "acme", "--json"]).ended_with(1).json();
    assert_eq!((&report["delivered"], &report["status"]), (&false.into(), &403.into()));
}

#[test]
fn an_endpoint_that_is_not_signed_can_be_given_a_secret() {
    let (bench, receiver) = (bench(), Receiver::start());
    add(&bench, "acme", &receiver.url(), &["--unsigned"]);
    bench.run(&["destinations", "show", "acme"]).succeeded().says(&["requests are not signed"]);
    let rotated = bench.run(&["destinations", "rotate-secret", "acme", "--secret", "file:secret"]);
    assert!(!rotated.succeeded().says(&["signs with the new secret"]).out.contains(SECRET));
    bench.run(&["destinations", "test", "acme"]).succeeded();
    assert!(receiver.wait_for(1)[0].is_signed_with(SECRET));
}
