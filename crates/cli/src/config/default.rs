//! The commented default configuration: what `postbox init` writes and where the program takes its defaults from.

use toml::de::DeTable;

use super::document::Section;
use super::problem::Collector;
use super::relay::{RelayOverrides, RelaySection};

/// The text of the default configuration.
pub(crate) const DEFAULT_TEXT: &str = include_str!("default.toml");

/// The defaults of `[relay]`.
pub(crate) fn relay_defaults() -> RelaySection {
    let problems = Collector::default();
    let (document, _) = DeTable::parse_recoverable(DEFAULT_TEXT);
    let mut root = Section::new("", 0..0, document.get_ref(), &problems);
    root.section("relay")
        .and_then(|section| RelayOverrides::read(section).complete())
        .expect("default.toml gives every key of [relay]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::{Config, Secrets};
    use postbox_core::destination::{DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT};
    use postbox_core::retry::RetryPolicy;
    use postbox_relay::RelayConfig;

    /// The default file with every commented-out key taken in.
    fn everything() -> String {
        DEFAULT_TEXT
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(key) if key.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => key,
                _ => line,
            })
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn every_key_of_the_default_file_is_accepted() {
        let config = Config::parse("postbox.toml", &everything(), Secrets::Trust).expect("accepted");
        assert_eq!(config.database_url.as_deref(), Some("postgres://app@localhost/shop"));
        assert_eq!(config.destinations.len(), 2);
    }

    #[test]
    fn every_example_in_the_documentation_is_accepted() {
        let webhooks = include_str!("../../../../docs/webhooks.md");
        let whatsapp = include_str!("../../../../docs/whatsapp.md");
        for (page, count) in [(webhooks, 2), (whatsapp, 1)] {
            let examples: Vec<&str> = page.split("```toml\n").skip(1).collect();
            assert_eq!(examples.len(), count);
            for example in examples {
                let example = example.split("```").next().unwrap_or_default();
                Config::parse("example", example, Secrets::Trust).expect("accepted");
            }
        }
    }

    #[test]
    fn every_key_that_is_known_is_in_the_default_file() {
        let mut text = everything();
        for line in ["[database]", "[relay]", "[endpoints]", "kind = \"webhook\"", "kind = \"whatsapp\""] {
            text = text.replacen(&format!("\n{line}\n"), &format!("\n{line}\nunknown_to_all = 1\n"), 1);
        }
        let problems = Config::parse("postbox.toml", &text, Secrets::Trust).expect_err("five unknown keys");
        let shown = format!("{:?}", miette::Report::new(problems));
        for list in shown.split("the keys are: ").skip(1) {
            let list = list.split("\n\n").next().unwrap_or(list).split('╭').next().unwrap_or(list);
            for key in
                list.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).filter(|key| !key.is_empty())
            {
                assert!(DEFAULT_TEXT.contains(&format!("{key} = ")), "`{key}` is not documented");
            }
        }
        assert_eq!(shown.matches("the keys are: ").count(), 5, "{shown}");
    }

    #[test]
    fn what_the_default_file_shows_is_what_holds_without_it() {
        let shown = Config::parse("postbox.toml", &everything(), Secrets::Trust).expect("accepted");
        let shown = &shown.destinations[0];
        let short = "[[destination]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"http://localhost/\"\n";
        let short = Config::parse("postbox.toml", short, Secrets::Trust).expect("accepted");
        let short = &short.destinations[0];
        assert_eq!(shown.retry, short.retry);
        assert_eq!(shown.retry, RetryPolicy::default());
        assert_eq!((shown.concurrency, shown.timeout.value), (short.concurrency, short.timeout.value));
        assert_eq!((shown.concurrency, shown.timeout.value), (DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT));
        let (relay, code) = (relay_defaults(), RelayConfig::default());
        whatsapp_shows_what_holds();
        assert_eq!(
            (relay.poll_interval, relay.max_in_flight),
            (code.limits.poll_interval, code.limits.max_in_flight)
        );
        assert_eq!((relay.lease_ttl, relay.drain_timeout), (code.lease_ttl, code.drain_timeout));
    }

    fn whatsapp_shows_what_holds() {
        let shown = Config::parse("postbox.toml", &everything(), Secrets::Trust).expect("accepted");
        let short = "[[destination]]\nname = \"support\"\nkind = \"whatsapp\"\nphone_number_id = \"106540352242922\"\n\
                     token = { env = \"WHATSAPP_TOKEN\" }\naccount = \"acme\"\n";
        let short = Config::parse("postbox.toml", short, Secrets::Trust).expect("accepted");
        let (shown, short) = (&shown.destinations[1], &short.destinations[0]);
        assert_eq!(shown.destination(), short.destination());
        assert_eq!(shown.reach.url(), short.reach.url());
    }
}
