//! Where requests may go and how they get there: the address policy, proxies, client certificates.

use postbox_core::outcome::FailureClass::{self, Misconfigured, Permanent, Transient};
use postbox_core::outcome::{Failure, Outcome};
use postbox_core::sink::Sink;
use postbox_sinks::webhook::{ClientIdentity, Egress, ProxyConfig, WebhookConfig, WebhookSink};
use postbox_testkit::receiver::{Answer, Receiver, Script};
use postbox_testkit::sink_conformance::{attempt, event};
use postbox_testkit::tunnel::{Asked, TunnelProxy};

async fn receiver() -> Receiver {
    Receiver::start(Script::always(Answer::Ok)).await
}

async fn deliver(config: WebhookConfig) -> Outcome {
    WebhookSink::new(config).expect("the configuration is fine").deliver(&attempt(event("1", 1, "{}"))).await
}

async fn assert_delivered(config: WebhookConfig) {
    let outcome = deliver(config).await;
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
}

async fn assert_failure(config: WebhookConfig, class: FailureClass, hint: &str) -> Failure {
    match deliver(config).await {
        Outcome::Failed(failure) => {
            assert_eq!(failure.class, class, "{failure:?}");
            assert!(failure.reason.contains(hint), "{failure:?}");
            failure
        }
        other => panic!("{other:?} is no failure"),
    }
}

/// The receiver by a name that resolves to it.
fn by_name(receiver: &Receiver) -> String {
    format!("http://localhost:{}/hooks", receiver.address().port())
}

fn proxy(url: String) -> Option<ProxyConfig> {
    Some(ProxyConfig { url, credentials: None })
}

#[tokio::test]
async fn a_name_that_leads_inside_is_blocked_and_never_connected_to() {
    let receiver = receiver().await;
    let config = WebhookConfig { egress: Egress::public(), ..WebhookConfig::new(by_name(&receiver)) };
    assert_failure(config, Permanent, "a loopback address; egress allows public").await;
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn an_address_that_leads_inside_is_refused_before_anything_is_sent() {
    let receiver = receiver().await;
    let config = WebhookConfig { egress: Egress::public(), ..WebhookConfig::new(receiver.url()) };
    let error = WebhookSink::new(config).expect_err("127.0.0.1 is not public");
    assert!(error.to_string().contains("url: leads to 127.0.0.1"), "{error}");
}

#[tokio::test]
async fn what_the_operator_allows_is_reached() {
    let receiver = receiver().await;
    let egress = Egress::listed(["public", "127.0.0.0/8"]).unwrap();
    assert_delivered(WebhookConfig { egress, ..WebhookConfig::new(receiver.url()) }).await;
}

#[tokio::test]
async fn http_and_https_go_through_the_proxy_that_is_named() {
    let proxy_server = TunnelProxy::start().await;
    let plain = receiver().await;
    let tls = Receiver::start_tls(Script::always(Answer::Ok)).await;
    for receiver in [&plain, &tls] {
        assert_delivered(WebhookConfig {
            proxy: Some(ProxyConfig { url: proxy_server.url(), credentials: Some("shop:hunter2".into()) }),
            ca_file: receiver.ca_file().map(std::path::Path::to_path_buf),
            ..WebhookConfig::new(receiver.url())
        })
        .await;
        assert_eq!((receiver.count(), receiver.connections()), (1, 1));
    }
    // "shop:hunter2" in base64.
    let authorization = Some("Basic c2hvcDpodW50ZXIy".to_owned());
    let expected = [&plain, &tls].map(|receiver| Asked {
        target: receiver.address().to_string(),
        authorization: authorization.clone(),
    });
    assert_eq!(proxy_server.asked(), expected);
}

#[tokio::test]
async fn a_proxy_is_asked_for_the_name_when_nothing_is_restricted() {
    let (proxy_server, receiver) = (TunnelProxy::start().await, receiver().await);
    assert_delivered(WebhookConfig {
        proxy: proxy(proxy_server.url()),
        ..WebhookConfig::new(by_name(&receiver))
    })
    .await;
    assert_eq!(proxy_server.asked()[0].target, format!("localhost:{}", receiver.address().port()));
}

#[tokio::test]
async fn a_proxy_is_no_way_around_the_policy() {
    let (proxy_server, receiver) = (TunnelProxy::start().await, receiver().await);
    let config = WebhookConfig {
        egress: Egress::public(),
        proxy: proxy(proxy_server.url()),
        ..WebhookConfig::new(by_name(&receiver))
    };
    assert_failure(config, Permanent, "a loopback address").await;
    assert_eq!(proxy_server.asked(), []);
}

#[tokio::test]
async fn a_proxy_that_opens_no_tunnel_has_its_class_and_nothing_is_sent() {
    let receiver = receiver().await;
    for (status, class, hint) in [
        ("407 Proxy Authentication Required", Misconfigured, "check `proxy_credentials`"),
        ("403 Forbidden", Misconfigured, "allows no tunnel"),
        ("502 Bad Gateway", Transient, "answered 502"),
        ("301 Moved Permanently", Transient, "answered 301"),
    ] {
        let proxy_server = TunnelProxy::answering(status).await;
        let config = WebhookConfig { proxy: proxy(proxy_server.url()), ..WebhookConfig::new(receiver.url()) };
        assert_failure(config, class, hint).await;
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_proxy_that_is_away_or_speaks_no_http_is_transient() {
    let receiver = receiver().await;
    // Free again as soon as it was given.
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config =
        WebhookConfig { proxy: proxy(format!("http://{away}")), ..WebhookConfig::new(receiver.url()) };
    assert_failure(config, Transient, "the proxy cannot be reached").await;
    let garbage = Receiver::start(Script::always(Answer::Garbage)).await;
    let url = format!("http://{}", garbage.address());
    let config = WebhookConfig { proxy: proxy(url), ..WebhookConfig::new(receiver.url()) };
    assert_failure(config, Transient, "opened no tunnel").await;
}

#[tokio::test]
async fn a_receiver_that_wants_a_certificate_gets_the_configured_one() {
    let receiver = Receiver::start_mutual_tls(Script::always(Answer::Ok)).await;
    let files = receiver.client_files().expect("it wants one").clone();
    let with = |identity| WebhookConfig {
        client_identity: identity,
        ca_file: receiver.ca_file().map(std::path::Path::to_path_buf),
        ..WebhookConfig::new(receiver.url())
    };
    assert_delivered(with(Some(ClientIdentity { certificate: files.certificate, key: files.key }))).await;
    let outcome = deliver(with(None)).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn a_certificate_with_the_key_of_another_is_refused_at_load() {
    let one = Receiver::start_mutual_tls(Script::always(Answer::Ok)).await;
    let other = Receiver::start_mutual_tls(Script::always(Answer::Ok)).await;
    let identity = ClientIdentity {
        certificate: one.client_files().unwrap().certificate.clone(),
        key: other.client_files().unwrap().key.clone(),
    };
    let refused = |url: &str| {
        let config = WebhookConfig { client_identity: Some(identity.clone()), ..WebhookConfig::new(url) };
        WebhookSink::new(config).expect_err("it cannot be used").to_string()
    };
    assert!(refused("https://localhost/").contains("cannot be used with the key"));
    assert!(refused("http://localhost/").contains("is for https"));
}
