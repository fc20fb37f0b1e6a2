//! The list of behaviours, from which the tests of an implementation are made.

/// Makes a `#[tokio::test]` of every behaviour of the suite. `$harness` names an `async fn` without arguments that gives
/// a [`StoreHarness`](crate::store_conformance::StoreHarness) on a fresh database.
#[macro_export]
macro_rules! store_conformance {
    ($harness:ident) => {
        $crate::store_conformance!(@room $harness, producing, [
            sequences_are_gapless_per_aggregate,
            the_type_is_part_of_an_aggregate,
            an_aggregate_keeps_its_lane_and_shard,
            a_repeated_event_id_inserts_nothing,
            a_given_sequence_must_be_the_next_one,
            what_no_event_may_be_is_refused,
            a_pruned_aggregate_goes_on_with_its_sequence,
        ]);
        $crate::store_conformance!(@room $harness, scanning, [
            a_committed_event_is_found_with_everything_its_producer_wrote,
            a_rolled_back_event_is_never_found,
            an_event_that_was_dispatched_is_not_found_again,
            rows_come_in_order_within_the_shards_that_were_asked_for,
            a_shard_without_rows_keeps_its_cursor,
            rows_up_to_the_cursor_come_by_id_alone,
            a_scan_starts_above_its_floor,
            a_long_to_do_list_is_read_in_bounded_pieces,
            a_busy_aggregate_brings_only_its_first_events_along,
            a_saturated_aggregate_brings_no_event_along,
            an_event_that_commits_late_is_found_below_the_cursor,
            the_floor_follows_once_every_transaction_has_ended,
            a_large_payload_is_deferred,
            moments_of_the_producer_are_told_as_durations,
            an_arrival_names_the_destinations_that_block_it,
        ]);
        $crate::store_conformance!(@room $harness, reading, [
            loading_leaves_out_what_is_not_on_the_to_do_list,
            loading_nothing_gives_nothing,
            loaded_arrivals_say_what_blocks_them,
            a_refill_continues_one_aggregate,
            a_payload_is_read_exactly_as_it_was_written,
            the_payload_of_an_unknown_event_is_none,
            a_migrated_schema_passes_its_check,
        ]);
        $crate::store_conformance!(@room $harness, due, [
            a_head_is_due_when_its_time_has_come,
            a_due_lane_comes_with_what_waits_behind_its_head,
            a_held_lane_is_not_due,
            the_longest_due_lanes_come_first,
            destinations_do_not_take_each_others_places,
            lanes_of_other_shards_are_left_alone,
            a_parked_delivery_comes_back_whole,
            an_expired_delivery_comes_back_with_nothing_left,
        ]);
        $crate::store_conformance!(@room $harness, settling, [
            a_receipt_says_what_was_confirmed,
            an_event_leaves_with_a_row_for_every_destination,
            events_that_are_not_delivered_are_recorded_as_what_they_are,
            a_failure_is_remembered_with_what_the_operator_needs,
            a_late_success_keeps_the_history,
            the_history_is_bounded,
            a_repeated_batch_changes_nothing,
            an_empty_batch_is_no_error,
            a_large_batch_is_recorded_whole,
            a_stale_term_is_refused_and_the_others_are_recorded,
            an_evicted_relay_records_nothing,
            a_record_does_not_bring_a_finished_delivery_back,
            settles_of_two_stores_do_not_disturb_each_other,
        ]);
        $crate::store_conformance!(@room $harness, beginning, [
            a_begun_attempt_comes_back_in_doubt_when_it_is_to_be_decided,
            beginning_again_is_harmless_and_an_earlier_attempt_is_refused,
            nothing_begins_under_a_lost_term,
            only_a_head_begins,
            the_outcome_of_a_begun_attempt_is_recorded_once,
            only_a_withdrawal_undoes_a_beginning,
            a_lane_is_held_for_want_of_evidence,
            a_replay_begins_anew,
            uncounted_attempts_are_remembered,
            a_begun_head_keeps_its_time_when_an_earlier_one_is_replayed,
        ]);
        $crate::store_conformance!(@room $harness, heads, [
            a_waiting_delivery_with_nothing_ahead_becomes_the_head,
            later_events_wait_behind_the_head,
            a_finished_head_makes_way_for_the_next,
            a_new_head_that_was_put_off_is_due_at_its_own_time,
            several_outcomes_of_a_lane_in_one_settle_promote_the_first_that_is_left,
            a_held_head_keeps_its_lane_waiting,
            lanes_of_different_destinations_have_heads_of_their_own,
        ]);
        $crate::store_conformance!(@room $harness, leases, [
            the_first_relay_is_given_every_shard,
            renewing_changes_no_term,
            a_second_relay_gets_its_fair_share_when_the_first_gives_it_back,
            nobody_takes_more_than_the_fair_share,
            a_silent_relay_loses_its_shards_to_the_next,
            a_relay_that_leaves_frees_everything,
            only_own_current_terms_can_be_given_back,
            a_relay_that_does_not_accept_is_given_nothing_more,
            no_shard_has_two_owners,
            the_status_shows_what_relays_tell_of_themselves,
            the_shards_are_listed_with_their_owners,
        ]);
        $crate::store_conformance!(@room $harness, overview, [
            migrating_again_applies_nothing,
            an_empty_outbox_is_not_late,
            the_lag_is_the_age_of_the_oldest_unfinished_event,
            an_event_that_was_put_off_is_not_late,
            the_status_counts_exceptions_by_destination,
        ]);
        $crate::store_conformance!(@room $harness, events, [
            events_are_listed_newest_first_in_pages,
            a_listed_event_shows_its_least_finished_state,
            selections_join_their_conditions,
            a_time_range_is_half_open,
            deliveries_are_listed_by_state_in_pages,
            a_story_tells_everything_of_an_event,
            the_story_of_an_unknown_event_is_none,
        ]);
        $crate::store_conformance!(@room $harness, replaying, [
            a_dead_letter_can_be_replayed,
            a_replay_adds_to_the_history,
            replayed_events_of_a_lane_go_out_in_order,
            a_replay_goes_before_what_is_parked_behind_it,
            a_replay_goes_before_what_is_on_the_to_do_list,
            a_replay_goes_on_in_bounded_batches,
            batches_leave_out_no_destination_of_an_event,
            a_held_lane_goes_on_once_its_head_is_replayed,
            a_discarded_head_makes_way_for_the_next,
            a_dead_letter_can_be_discarded,
            commands_touch_only_what_was_selected,
            an_interrupted_replay_goes_on_where_it_stopped,
            any_mixture_of_settles_and_commands_keeps_the_heads,
            commands_beside_running_settles_keep_the_heads,
        ]);
        $crate::store_conformance!(@room $harness, destinations, [
            what_is_known_already_is_not_read_again,
            an_endpoint_is_read_as_it_was_added,
            every_change_raises_the_version,
            plain_sql_raises_the_version,
            settings_that_cannot_be_used_spoil_only_their_own_endpoint,
            a_name_is_given_once,
            settings_are_replaced_only_as_they_were_seen,
            a_switch_needs_no_endpoint,
            an_endpoint_that_is_off_keeps_its_first_reason,
            old_secrets_sign_beside_the_new_one_until_they_expire,
            no_more_secrets_than_fit_into_a_request,
            a_removed_endpoint_takes_its_secrets_along,
            what_is_kept_for_a_removed_destination_can_be_discarded,
            the_status_shows_which_destinations_a_relay_works_with,
        ]);
        $crate::store_conformance!(@room $harness, reporting, [
            evidence_settles_an_attempt_in_doubt,
            evidence_settles_what_is_held_and_what_was_given_up_in_doubt,
            a_report_settles_nothing_else,
            repeated_and_disordered_reports_are_told_once_and_in_order,
            a_step_forward_writes_one_event,
            an_unmatched_report_is_joined_by_the_receipts_name,
            reports_are_pruned_with_their_events,
            calls_at_once_record_each_report_once,
        ]);
        $crate::store_conformance!(@room $harness, pruning, [
            old_finished_events_are_removed,
            unfinished_events_stay_whatever_their_age,
            dead_and_unrouted_events_are_kept_longer,
            pruning_goes_on_in_bounded_batches,
            pruning_the_past_of_an_aggregate_leaves_its_future,
        ]);
    };
    (@room $harness:ident, $room:ident, [$($behaviour:ident,)*]) => {
        mod $room {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    let harness = super::$harness().await;
                    $crate::store_conformance::$room::$behaviour(&harness).await;
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
            ("producing", include_str!("producing.rs")),
            ("scanning", include_str!("scanning.rs")),
            ("reading", include_str!("reading.rs")),
            ("due", include_str!("due.rs")),
            ("settling", include_str!("settling.rs")),
            ("beginning", include_str!("beginning.rs")),
            ("heads", include_str!("heads.rs")),
            ("leases", include_str!("leases.rs")),
            ("overview", include_str!("overview.rs")),
            ("events", include_str!("events.rs")),
            ("replaying", include_str!("replaying.rs")),
            ("destinations", include_str!("destinations.rs")),
            ("reporting", include_str!("reporting.rs")),
            ("pruning", include_str!("pruning.rs")),
        ] {
            assert!(list.contains(&format!("$harness, {room}, [")), "room {room} is not listed");
            for line in source.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let name = line.split('(').next().unwrap();
                assert!(list.contains(&format!("            {name},\n")), "{room}::{name} is not listed");
            }
        }
    }
}
