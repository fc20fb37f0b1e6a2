//! Mistakes in postbox.toml: each is told with its line and what to write instead, before anything starts.

use crate::bench::Bench;

const FINE: &str = "[[destination]]\nname = \"billing\"\nkind = \"webhook\"\nurl = \"http://localhost:1/\"\n";

/// Every way to get a file wrong: the text, and what the error has to hold.
const MISTAKES: [(&str, &[&str]); 41] = [
    (
        "[relay]\npol_interval = \"1s\"\n",
        &["unknown key `pol_interval` in [relay]", "postbox.toml:2:1", "did you mean `poll_interval`?"],
    ),
    ("[relay]\nzebra = 1\n", &["unknown key `zebra`", "the keys are: poll_interval, lease_ttl"]),
    ("[reley]\n", &["unknown key `reley`", "did you mean `relay`?"]),
    (
        "[relay]\npoll_interval = \"1 second\"\n",
        &["`poll_interval` is not a duration", "\"1 second\"", ":2:17"],
    ),
    ("[relay]\npoll_interval = 200\n", &["`poll_interval` must be a duration in quotes", "this is a number"]),
    ("[relay]\npoll_interval = \"5h\"\n", &["`poll_interval` must be 1ms to 1m"]),
    ("[relay]\nmax_in_flight = 0\n", &["`max_in_flight` must be 1 to 100000", "0 is out of bounds"]),
    ("[relay]\nmax_in_flight = \"many\"\n", &["must be a whole number", "this is a text"]),
    ("[relay\n", &["this is not TOML", ":1:"]),
    ("[destination]\nname = \"a\"\n", &["`destination` is a list of tables", "[[destination]]"]),
    (
        "[[destination]]\nkind = \"webhook\"\nurl = \"http://localhost/\"\n",
        &["[[destination]] has no `name`", "name = \"billing\""],
    ),
    (
        "[[destination]]\nname = \"a b\"\nkind = \"webhook\"\nurl = \"http://localhost/\"\n",
        &["this `name` cannot be used", "letters, digits"],
    ),
    (
        "[[destination]]\nname = \"a\"\nurl = \"http://localhost/\"\n",
        &["has no `kind`", "kind = \"webhook\""],
    ),
    (
        "[[destination]]\nname = \"a\"\nkind = \"kafka\"\n",
        &["\"kafka\" are not in this build", "kinds in this build: webhook, whatsapp"],
    ),
    (
        "[[destination]]\nname = \"a\"\nkind = \"webhok\"\n",
        &["there is no kind \"webhok\"", "did you mean `webhook`?"],
    ),
    ("[[destination]]\nname = \"a\"\nkind = \"webhook\"\n", &["has no `url`"]),
    (
        "[[destination]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"billing.example/hooks\"\n",
        &["this `url` cannot be used", "https://billing.example/hooks", ":4:7"],
    ),
    (
        "[[destination]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"ftp://billing.example\"\n",
        &["this `url` cannot be used", "https:// or http://"],
    ),
    ("headers\n", &["`headers` is not clear here", "match_headers", "request_headers"]),
    ("retry = { attempts = 0 }\n", &["`attempts` must be 1 to 1000"]),
    ("retry = { delays = [] }\n", &["`delays` is empty"]),
    ("retry = { jitter = 3 }\n", &["`jitter` must be 0 to 1"]),
    ("on_exhausted = \"drop\"\n", &["`on_exhausted` cannot be \"drop\"", "dead_letter, hold_lane"]),
    ("request_headers = { Webhook-Id = \"x\" }\n", &["this request header cannot be used", "set by Postbox"]),
    ("events = \"order.*\"\n", &["`events` must be a list of texts"]),
    (
        "[[destination]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"http://billing.example/\"\n",
        &["this `url` cannot be used", "use https://, or set `allow_http`"],
    ),
    (
        "[[destination]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"https://10.0.0.1/\"\negress = \"public\"\n",
        &["this `url` cannot be used", "10.0.0.1, which is a private address"],
    ),
    ("allow_http = \"yes\"\n", &["`allow_http` must be true or false"]),
    ("egress = \"privat\"\n", &["`egress` is no policy", "\"public\" (the internet"]),
    ("egress = [\"public\", \"10.0.0.1/8\"]\n", &["`egress` is no policy", "write \"10.0.0.0/8\""]),
    ("egress = []\n", &["`egress` is no policy", "nothing could be reached"]),
    ("client_key = \"a.key\"\n", &["`client_key` needs `client_certificate`"]),
    ("proxy = \"proxy:3128\"\n", &["this `proxy` cannot be used", "must begin with http://"]),
    ("proxy_credentials = { env = \"A\" }\n", &["`proxy_credentials` needs `proxy`"]),
    (
        "proxy = \"http://localhost:1\"\nproxy_credentials = \"hunter2\"\n",
        &["must say where the secret is kept"],
    ),
    ("envelope = \"xml\"\n", &["`envelope` cannot be \"xml\"", "json, cloudevents-binary"]),
    ("source = \"/shop\"\n", &["this `source` cannot be used", "for CloudEvents"]),
    (
        "envelope = \"cloudevents-binary\"\nrequest_headers = { ce-type = \"x\" }\n",
        &["this request header cannot be used", "set by Postbox"],
    ),
    (
        "secret = { env = \"A\", until = \"2030-01-01T00:00:00Z\" }\n",
        &["no secret here is without an end", "go out unsigned"],
    ),
    ("secret = [{ env = \"A\" }, { env = \"B\", until = \"tomorrow\" }]\n", &["`until` is no moment"]),
    ("secret = [{ until = \"2030-01-01T00:00:00Z\" }]\n", &["exactly one of `env` and `file`", "until ="]),
];

#[test]
fn each_mistake_is_told_with_its_place_and_what_to_write() {
    let bench = Bench::on("sqlite:shop.db");
    for (text, parts) in MISTAKES {
        let text = match text {
            "headers\n" => format!("{FINE}headers = {{ a = \"b\" }}\n"),
            key if !key.starts_with('[') => format!("{FINE}{key}"),
            whole => whole.to_owned(),
        };
        bench.write("postbox.toml", &text);
        for command in ["relay", "status"] {
            bench
                .run(&[command])
                .ended_with(2)
                .complains(parts)
                .complains(&["postbox.toml", "nothing was started"]);
        }
    }
    assert!(!bench.path("shop.db").exists(), "something was started");
}

#[test]
fn every_mistake_of_a_file_is_told_at_once() {
    let bench = Bench::on("sqlite:shop.db");
    bench.write(
        "postbox.toml",
        &format!("[relay]\nlease_tttl = \"1s\"\ndrain_timeout = \"soon\"\n{FINE}concurrency = -1\n{FINE}"),
    );
    bench.run(&["relay"]).ended_with(2).complains(&[
        "postbox.toml has 4 mistakes",
        "did you mean `lease_ttl`?",
        "`drain_timeout` is not a duration",
        "`concurrency` must be 1 to 10000",
        "two destinations named \"billing\"",
    ]);
}

#[test]
fn a_lease_too_short_for_an_attempt_is_refused_with_the_numbers() {
    let bench = Bench::on("sqlite:shop.db");
    bench.write("postbox.toml", &format!("{FINE}timeout = \"30s\"\n"));
    bench.run(&["relay"]).ended_with(2).complains(&[
        "lease_ttl = 20s",
        "timeout = 30s",
        "\"billing\"",
        "at least 46s",
    ]);
}

#[test]
fn secrets_are_checked_before_the_relay_starts_and_needed_by_it_alone() {
    let bench = Bench::migrated();
    bench.write(
        "postbox.toml",
        &format!("{FINE}secret = [{{ env = \"NEW_SECRET\" }}, {{ file = \"old.secret\" }}]\n"),
    );
    bench.run(&["status"]).succeeded();
    bench.run(&["relay", "--once"]).ended_with(2).complains(&[
        "2 mistakes",
        "the environment variable NEW_SECRET is not set",
        "the file old.secret cannot be read",
    ]);
    bench.write("old.secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    let mut command = bench.command(&["relay", "--once"]);
    command.env("NEW_SECRET", "hunter2!");
    let ended = crate::bench::Ended::of(command).ended_with(2).complains(&["cannot be used", "whsec_"]);
    assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    let mut command = bench.command(&["relay", "--once"]);
    command.env("NEW_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    crate::bench::Ended::of(command).succeeded();
}

#[test]
fn a_secret_that_has_expired_need_not_be_kept_any_more() {
    let bench = Bench::migrated();
    bench.write("new.secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    for until in ["\"2020-01-01T00:00:00Z\"", "2020-01-01T00:00:00+01:00"] {
        let secrets = format!("[{{ file = \"new.secret\" }}, {{ file = \"gone\", until = {until} }}]");
        bench.write("postbox.toml", &format!("{FINE}secret = {secrets}\n"));
        bench.run(&["relay", "--once"]).succeeded();
    }
}

#[test]
fn files_and_credentials_for_the_way_are_checked_before_the_relay_starts() {
    let bench = Bench::migrated();
    let fine = FINE.replace("http:", "https:");
    bench.write("not.pem", "hunter2");
    for (keys, parts) in [
        ("ca_file = \"not.pem\"", &["`ca_file` of \"billing\"", "holds no certificate"][..]),
        (
            "client_certificate = \"none.pem\"\nclient_key = \"none.key\"",
            &["`client_certificate` of \"billing\"", "none.pem cannot be read"],
        ),
        (
            "proxy = \"http://localhost:1\"\nproxy_credentials = { env = \"PROXY_CREDENTIALS\" }",
            &["credentials for the proxy of \"billing\" are missing", "PROXY_CREDENTIALS is not set"],
        ),
        (
            "proxy = \"http://localhost:1\"\nproxy_credentials = { file = \"not.pem\" }",
            &["`proxy_credentials` of \"billing\"", "not of the form user:password"],
        ),
    ] {
        bench.write("postbox.toml", &format!("{fine}{keys}\n"));
        bench.run(&["status"]).succeeded();
        let ended = bench.run(&["relay", "--once"]).ended_with(2).complains(parts);
        assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    }
}

#[test]
fn no_error_shows_what_is_secret_in_the_file() {
    let bench = Bench::empty();
    for text in [
        "[database]\nurl = \"oracle://app:hunter2@db/shop\"\n".to_owned(),
        "[database]\nurls = \"postgres://app:hunter2@db/shop\"\n".to_owned(),
        "[database]\nurl = \"postgres://app:hunter2@db/shop\n".to_owned(),
        format!("{FINE}secret = \"hunter2\"\n"),
        format!("{FINE}request_headers = {{ Authorization = \"hunter2\\n\" }}\n"),
        FINE.replace("localhost:1", "user:hunter2@localhost"),
    ] {
        bench.write("postbox.toml", &text);
        let ended = bench.run(&["relay"]).ended_with(2);
        assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let bench = Bench::on("sqlite:shop.db");
    bench
        .run(&["status", "--config", "nowhere.toml"])
        .ended_with(2)
        .complains(&["nowhere.toml cannot be read", "postbox init"]);
    bench.run(&["status", "--config", "."]).ended_with(2).complains(&["it is a directory"]);
    std::fs::write(bench.path("binary.toml"), [0xff, 0xfe, 0]).unwrap();
    bench.run(&["status", "--config", "binary.toml"]).ended_with(2).complains(&["it is not UTF-8"]);
}

#[test]
fn the_command_line_overrides_the_environment_and_both_override_the_file() {
    let bench = Bench::empty();
    bench.write("postbox.toml", "[database]\nurl = \"sqlite:file.db\"\n");
    bench.run(&["migrate"]).succeeded().says(&["sqlite:file.db"]);
    let mut command = bench.command(&["migrate"]);
    command.env("POSTBOX_DATABASE_URL", "sqlite:environment.db");
    crate::bench::Ended::of(command).succeeded().says(&["sqlite:environment.db"]);
    let mut command = bench.command(&["migrate", "--database-url", "sqlite:line.db"]);
    command.env("POSTBOX_DATABASE_URL", "sqlite:environment.db");
    crate::bench::Ended::of(command).succeeded().says(&["sqlite:line.db"]);
}

#[test]
fn an_error_looks_like_this() {
    let bench = Bench::empty();
    bench.write("postbox.toml", "[relay]\npol_interval = \"1s\"\nlease_ttl = \"20s\"\n");
    let expected = "  × postbox.toml has a mistake; nothing was started

Error: 
  × unknown key `pol_interval` in [relay]
   ╭─[postbox.toml:2:1]
 1 │ [relay]
 2 │ pol_interval = \"1s\"
   · ──────┬─────
   ·       ╰── not a key here
 3 │ lease_ttl = \"20s\"
   ╰────
  help: did you mean `poll_interval`?

";
    assert_eq!(bench.run(&["status"]).ended_with(2).err, expected);
}
