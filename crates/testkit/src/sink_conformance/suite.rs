//! The list of behaviours, from which the tests of a sink are made.

/// Makes a `#[tokio::test]` of every behaviour of the suite. `$harness` names an `async fn` without arguments that gives
/// a [`SinkHarness`](crate::sink_conformance::SinkHarness).
#[macro_export]
macro_rules! sink_conformance {
    ($harness:ident) => {
        $crate::sink_conformance!(@room $harness, confirming, [
            what_the_peer_confirmed_is_delivered_once,
            a_payload_arrives_byte_for_byte,
            calls_run_at_the_same_time,
            strange_names_do_no_harm,
            a_sink_recovers_with_its_peer,
        ]);
        $crate::sink_conformance!(@room $harness, failing, [
            what_will_pass_is_transient,
            what_the_peer_refuses_is_rejected,
            a_lost_answer_is_unknown,
            silence_is_unknown,
            an_answer_that_is_none_is_unknown,
            a_lost_answer_on_a_used_connection_is_unknown,
            reasons_give_nothing_away,
        ]);
        $crate::sink_conformance!(@room $harness, bounds, [
            an_attempt_ends_within_its_time,
            an_endless_answer_is_left,
            a_dropped_call_leaves_a_working_sink,
        ]);
    };
    (@room $harness:ident, $room:ident, [$($behaviour:ident,)*]) => {
        mod $room {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    let harness = super::$harness().await;
                    $crate::sink_conformance::$room::$behaviour(&harness).await;
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that is not listed above would never run.
    #[test]
    fn every_behaviour_is_listed() {
        let list = include_str!("suite.rs");
        for (room, source) in [
            ("confirming", include_str!("confirming.rs")),
            ("failing", include_str!("failing.rs")),
            ("bounds", include_str!("bounds.rs")),
        ] {
            assert!(list.contains(&format!("$harness, {room}, [")), "room {room} is not listed");
            for line in source.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let name = line.split('(').next().unwrap();
                assert!(list.contains(&format!("            {name},\n")), "{room}::{name} is not listed");
            }
        }
    }
}
