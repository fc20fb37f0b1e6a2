//! Where the relay's requests go and by which way, as `postbox.toml` says.

use postbox_testkit::receiver::{Answer, Script};
use postbox_testkit::tunnel::{Asked, TunnelProxy};

use crate::bench::{Bench, Ended};
use crate::receiver::Receiver;

#[test]
fn a_blocked_address_is_a_dead_letter_at_once_with_its_reason() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url().replace("127.0.0.1", "localhost"), "egress = \"public\"");
    bench.produce("42", "order.confirmed");
    bench.run(&["relay", "--once"]).ended_with(1);
    let letters = bench.run(&["dead-letters", "list", "--json"]).succeeded().json();
    let letter = &letters["dead_letters"][0];
    assert_eq!(letter["attempts"], 1, "{letter}");
    let reason = letter["last_error"].as_str().unwrap();
    assert!(reason.contains("a loopback address; egress allows public"), "{reason}");
    assert!(receiver.received().is_empty());
}

#[test]
fn a_proxy_that_the_environment_names_is_not_used() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    bench.produce("42", "order.confirmed");
    let mut command = bench.command(&["relay", "--once"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1");
    }
    Ended::of(command).succeeded();
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_the_proxy_with_its_credentials_are_used() {
    let receiver = postbox_testkit::receiver::Receiver::start_mutual_tls(Script::always(Answer::Ok)).await;
    let proxy = TunnelProxy::start().await;
    let client = receiver.client_files().unwrap();
    let bench = Bench::migrated();
    bench.write("proxy-user", "shop:hunter2\n");
    bench.write_destination(
        &receiver.url(),
        &format!(
            "ca_file = {:?}\nclient_certificate = {:?}\nclient_key = {:?}\nproxy = {:?}\n\
             proxy_credentials = {{ file = \"proxy-user\" }}\negress = [\"public\", \"127.0.0.0/8\"]",
            receiver.ca_file().unwrap(),
            client.certificate,
            client.key,
            proxy.url()
        ),
    );
    bench.produce("42", "order.confirmed");
    let command = bench.command(&["relay", "--once"]);
    tokio::task::spawn_blocking(move || Ended::of(command).succeeded()).await.unwrap();
    assert_eq!(receiver.count(), 1);
    // "shop:hunter2" in base64.
    let authorization = Some("Basic c2hvcDpodW50ZXIy".to_owned());
    assert_eq!(proxy.asked(), [Asked { target: receiver.address().to_string(), authorization }]);
}
