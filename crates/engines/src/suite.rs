//! The rules of [`Engine`], as tests that run for every implementor.
//!
//! Each rule is a function over a fresh engine, in the file of its capability; the modules at
//! the end run all of them for each engine.

mod acknowledging;
#[cfg(unix)]
mod batch_forms;
mod clock;
mod conflict;
mod copies;
mod deduplication;
mod expiry;
mod feed;
mod found;
mod groups;
mod history;
mod logged_messages;
mod messages;
mod queue_changes;
mod queues;
mod range;
mod replication;
mod rows;
mod schedules;
mod search;
#[cfg(unix)]
#[path = "../../../tests/kit/postgres.rs"]
mod server;
#[cfg(unix)]
mod shared_history;
#[cfg(unix)]
mod shared_log;
#[cfg(unix)]
mod sharing;
mod trimming;
#[cfg(unix)]
mod unsupported;
mod value_index;
mod writers;

pub(super) use search::{doc, of};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{Engine, Reader, Report, Snapshot, Work, Writer};
use openkv_core::model::{
    Arith, AtomicWrite, Check, Claim, Decision, Delivery, EncodedValue, Encoding, Key, LOCK_MS,
    Limits, Message, Mutation, Outcome, Result, Settlement, Time, Versionstamp, WriteParts,
};

const NOW: i64 = 1_000_000;

pub(super) fn key(text: &str) -> Key {
    let mut bytes = vec![2];
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    Key::from_encoded(bytes)
}

fn bytes(value: &[u8]) -> EncodedValue {
    EncodedValue { encoding: Encoding::Bytes, bytes: value.to_vec() }
}

pub(super) fn set(name: &str, value: &[u8]) -> Mutation {
    set_until(name, value, None)
}

fn set_until(name: &str, value: &[u8], expire_at_ms: Option<i64>) -> Mutation {
    let expiry = expire_at_ms.map(Time::At);
    Mutation::Set { key: key(name), suffixed: false, value: bytes(value), expiry }
}

pub(super) fn sum(name: &str, n: u64) -> Mutation {
    Mutation::Arith { op: Arith::Sum, key: key(name), operand: EncodedValue::le64(n) }
}

fn delete(name: &str) -> Mutation {
    Mutation::Delete { key: key(name) }
}

fn absent(name: &str) -> Check {
    Check { key: key(name), expected: None }
}

fn at_version(name: &str, version: u64) -> Check {
    Check { key: key(name), expected: Some(Versionstamp::new(version)) }
}

fn atomic(parts: WriteParts) -> AtomicWrite {
    AtomicWrite::new(parts, &Limits::default()).unwrap()
}

pub(super) fn write(checks: Vec<Check>, mutations: Vec<Mutation>) -> AtomicWrite {
    atomic(WriteParts { checks, mutations, ..WriteParts::default() })
}

fn enqueue(value: u8, due_ms: i64, backoff_ms: &[u32], undelivered: &[&str]) -> AtomicWrite {
    let message = Message {
        due: Time::At(due_ms),
        backoff_ms: backoff_ms.to_vec(),
        keys_if_undelivered: undelivered.iter().map(|name| key(name)).collect(),
        value: vec![value],
        ..Message::default()
    };
    atomic(WriteParts { messages: vec![message], ..WriteParts::default() })
}

/// The deadline of calls that do not wait.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn apply_at(writer: &mut impl Writer, work: Work, now_ms: i64) -> Report {
    writer.apply(work, now_ms, soon()).unwrap()
}

fn commit(writer: &mut impl Writer, writes: Vec<AtomicWrite>) -> Vec<Decision> {
    apply_at(writer, Work { writes, durable: true, ..Work::default() }, NOW).decisions
}

/// One commit of these mutations.
fn mutate(writer: &mut impl Writer, mutations: Vec<Mutation>) -> Vec<Decision> {
    commit(writer, vec![write(vec![], mutations)])
}

fn committed(version: u64) -> Decision {
    Decision::Committed(Versionstamp::new(version))
}

/// What `look` finds in a snapshot.
fn read<T>(
    reader: &mut impl Reader,
    now_ms: i64,
    mut look: impl FnMut(&mut dyn Snapshot) -> Result<T>,
) -> T {
    let mut found = None;
    let read = reader.read(now_ms, &mut |snapshot| {
        found = Some(look(snapshot)?);
        Ok(())
    });
    read.unwrap();
    found.unwrap()
}

/// Version and value of a key.
fn get_at(reader: &mut impl Reader, name: &str, now_ms: i64) -> Option<(u64, Vec<u8>)> {
    read(reader, now_ms, |snapshot| {
        let mut found = None;
        snapshot.get(key(name).as_bytes(), &mut |row| {
            assert_eq!(row.key, key(name).as_bytes());
            found = Some((row.stamp.version(), row.value.to_vec()));
        })?;
        Ok(found)
    })
}

fn get(reader: &mut impl Reader, name: &str) -> Option<(u64, Vec<u8>)> {
    get_at(reader, name, NOW)
}

fn claim(writer: &mut impl Writer, lock: i64, now_ms: i64) -> Vec<(i64, Vec<u8>)> {
    let deliveries = claim_of(writer, "", lock, LOCK_MS, 10, now_ms);
    deliveries.into_iter().map(|delivery| (delivery.id, delivery.value)).collect()
}

fn claim_of(
    writer: &mut impl Writer,
    queue: &str,
    lock: i64,
    lock_ms: i64,
    max: usize,
    now_ms: i64,
) -> Vec<Delivery> {
    let claims = vec![Claim { queue: queue.into(), max, lock_ms, lock }];
    let work = Work { claims, durable: true, ..Work::default() };
    apply_at(writer, work, now_ms).deliveries.remove(0)
}

fn settle(writer: &mut impl Writer, id: i64, lock: i64, outcome: Outcome, now_ms: i64) -> Report {
    let settlements = vec![Settlement::new(id, lock, outcome)];
    apply_at(writer, Work { settlements, durable: true, ..Work::default() }, now_ms)
}
macro_rules! laws {
    ($fresh:expr; $($shelf:ident { $($rule:ident)* })*) => {
        $(mod $shelf {
            $(#[test]
            fn $rule() {
                let (engine, _keep) = $fresh;
                crate::suite::$shelf::$rule(&engine);
            })*
        })*
    };
}

/// The rules of entries: of an engine without logs and queues too.
macro_rules! rules_of_entries {
    ($fresh:expr) => {
        laws! { $fresh;
            rows {
                committed_entries_are_read
                a_kept_snapshot_is_never_stale
                a_rejected_write_leaves_nothing
                writes_of_a_batch_see_each_other
                large_values_are_stored_and_removed
                scans_are_ordered_and_stop_on_request
                uuids_increase_from_commit_to_commit
            }
            range {
                walks_have_expiries_and_seek
                a_deletion_sees_its_batch
                a_deletion_selects_by_its_filter
                a_deletion_filters_changed_entries_again
                a_filter_does_not_block_other_writes
                a_deletion_is_bounded_or_rejected
            }
            conflict {
                a_changed_range_fails_the_write
                a_range_check_includes_earlier_writes_of_the_batch
            }
            expiry {
                expired_entries_are_absent_at_once_and_swept_in_steps
                entries_stored_as_expired_are_absent_in_the_batch
                setting_an_expiry_keeps_value_and_versionstamp
                a_new_expiry_takes_effect_inside_a_batch
                a_relative_expiry_counts_from_the_time_of_the_batch
            }
        }
    };
}

macro_rules! rules_of_every_engine {
    ($fresh:expr) => {
        rules_of_entries!($fresh);
        laws! { $fresh;
            feed {
                changes_are_logged_only_after_the_log_is_enabled
                exactly_the_commits_of_a_batch_are_logged
                expiries_and_dead_messages_are_logged
                the_log_has_expiries_and_tells_them_from_deletions
                large_values_are_read_also_when_they_were_replaced
            }
            messages {
                messages_are_delivered_in_order_and_hidden_while_locked
                a_failed_message_is_retried_until_its_schedule_ends
                an_expired_lock_is_a_failure_unless_renewed
            }
            replication {
                a_copy_repeats_the_log
                feeds_and_followers_read_the_same_segments
                a_log_that_begins_again_has_nothing_of_before
                every_commit_is_in_one_segment
                a_read_before_expiry_has_what_has_expired
            }
            acknowledging {
                a_commit_acknowledges_its_messages_or_does_nothing
            }
            schedules {
                a_due_time_gives_one_message
                a_long_pause_is_made_up_in_steps
                the_same_schedule_again_is_no_change
                what_cannot_fire_stays_or_is_refused
            }
            deduplication {
                a_message_replaces_the_waiting_one_with_its_key
                a_message_runs_once_more_after_the_run_under_way
                what_waits_for_an_end_waits_for_a_retry_and_not_for_a_dead_letter
                what_waits_for_an_end_waits_for_the_run_with_the_key
                what_replaces_one_that_waits_for_an_end_has_a_due_time
                dead_letters_with_one_key_are_requeued_together
            }
            groups {
                groups_take_turns
                a_group_runs_no_more_than_its_concurrency
                a_failure_and_a_return_free_the_place
                a_rate_says_when_the_next_message_goes
                a_queue_runs_no_more_than_its_concurrency
                a_group_is_paused_drained_and_looked_at
                a_delayed_message_of_a_group_goes_when_it_is_due
                many_groups_that_become_due_do_not_keep_a_claim_from_delivering
            }
            queues {
                a_delay_counts_from_the_time_of_the_batch
                a_deduplication_key_is_taken_until_its_message_is_removed
                an_expired_lock_renewed_with_a_claim_is_kept
                a_message_with_an_expired_lock_is_due_at_once
                the_depth_is_the_number_of_live_messages
                dead_messages_are_kept_listed_and_purged
                a_message_is_deleted_while_no_consumer_has_it
                a_message_that_no_retry_can_help_dies_at_once
                dead_messages_are_requeued_as_new
                messages_are_looked_at_and_not_taken
                peek_lists_in_the_order_of_delivery
                higher_priorities_come_first_then_earlier_due_times
                named_queues_are_separate
                queues_are_listed_while_they_have_a_message_in_any_state
                settlements_and_renewals_report_whether_the_lock_held
                stats_count_every_state
                what_is_returned_keeps_its_place_and_its_attempts
            }
            queue_changes {
                a_paused_queue_delivers_nothing
                a_drain_deletes_what_waits_in_steps
                a_cancelled_message_is_gone_whoever_has_it
                what_happens_to_a_message_is_reported_by_entries
            }
        }
    };
}

macro_rules! rules_of_shared_engines {
    ($fresh:expr) => {
        laws! { $fresh;
            writers {
                two_writers_do_not_interleave
            }
        }
    };
}

macro_rules! rules_of_search {
    ($fresh:expr) => {
        laws! { $fresh;
            search {
                a_search_can_be_cancelled
                an_index_follows_every_change
                an_index_follows_sums_expiries_deletions_and_dead_messages
                an_index_over_rows_is_built_in_steps_while_they_change
                hits_are_ranked_paged_and_highlighted
                indexes_are_listed_rejected_and_dropped
                the_largest_queries_are_executed
                words_without_spaces_are_found
                trigrams_find_parts_of_words
                an_index_of_the_earlier_default_is_kept
            }
        }
    };
}

macro_rules! rules_of_value_indexes {
    ($fresh:expr) => {
        laws! { $fresh;
            value_index {
                entries_follow_every_change
                unique_values_are_decided_in_the_order_of_the_writes
                a_unique_index_over_duplicates_fails
                a_unique_index_over_duplicates_fails_at_the_first_step
                a_duplicate_of_an_earlier_step_is_found
                long_values_are_in_order
                an_index_that_is_replaced_leaves_nothing
            }
            found {
                a_change_of_what_indexes_have_found_fails_the_write
                such_a_check_includes_earlier_writes_of_the_batch
                a_check_of_an_order_is_about_the_part_that_was_read
            }
        }
    };
}

macro_rules! rules_of_copies {
    ($fresh:expr) => {
        laws! { $fresh;
            copies {
                a_copy_is_replaced_and_follows
                a_replaced_copy_begins_its_logs_anew
                a_replacement_that_fails_changes_nothing
                entries_of_value_indexes_follow_a_repeated_log
                a_copy_builds_unique_indexes_without_a_check
            }
            trimming {
                a_large_commit_leaves_the_history_in_steps
                the_log_is_bounded_and_turned_off
                segments_without_changes_are_bounded
            }
        }
    };
}

macro_rules! rules_of_logged_messages {
    ($fresh:expr) => {
        laws! { $fresh;
            logged_messages {
                a_copy_has_the_messages_of_every_commit
                a_copy_delivers_what_consumers_of_the_original_had
                all_that_one_batch_does_is_logged
                messages_are_logged_only_when_requested
            }
        }
    };
}

/// Of an engine whose clock can be set back.
macro_rules! rules_of_clocks {
    ($fresh:expr) => {
        laws! { $fresh;
            clock {
                the_window_of_a_rate_begins_anew
                locks_and_delays_of_groups_count_by_their_length
                limiters_and_leases_count_by_their_length
                no_due_time_of_a_schedule_comes_twice
            }
        }
    };
}

macro_rules! rules_of_history {
    ($fresh:expr) => {
        laws! { $fresh;
            history {
                a_moment_outside_of_the_history_is_refused
                a_history_that_begins_again_has_nothing_of_before
                a_busy_key_has_every_version
                commits_inside_a_batch_are_moments_too
                commits_without_changes_have_a_time
                every_moment_is_read_as_it_was
                large_values_are_kept
                versions_are_the_changes_of_a_random_history
                versions_of_a_key_are_listed_newest_first
            }
        }
    };
}

mod bucket;

mod memory {
    rules_of_clocks!((crate::memory::MemoryEngine::new(), ()));
    rules_of_copies!((crate::memory::MemoryEngine::new(), ()));
    rules_of_history!((crate::memory::MemoryEngine::new(), ()));
    rules_of_logged_messages!((crate::memory::MemoryEngine::new(), ()));
    rules_of_every_engine!((crate::memory::MemoryEngine::new(), ()));
    rules_of_shared_engines!((crate::memory::MemoryEngine::new(), ()));
    rules_of_search!((crate::memory::MemoryEngine::new(), ()));
    rules_of_value_indexes!((crate::memory::MemoryEngine::new(), ()));
}

/// The engine of `examples/rust`.
#[path = "../../../examples/rust/src/map_engine.rs"]
mod map_engine;

mod example {
    rules_of_entries!((crate::suite::map_engine::MapEngine::default(), ()));
}

mod sqlite {
    use super::*;
    use crate::sqlite::{SqliteEngine, fresh};

    rules_of_every_engine!(super::fresh());
    rules_of_shared_engines!(super::fresh());
    rules_of_search!(super::fresh());
    rules_of_value_indexes!(super::fresh());
    rules_of_clocks!(super::fresh());
    rules_of_copies!(super::fresh());
    rules_of_history!(super::fresh());
    rules_of_logged_messages!(super::fresh());

    /// Found with eight handles on a new file: one saw incomplete tables of another, and another
    /// failed where SQLite does not wait.
    #[test]
    fn many_threads_open_one_new_file() {
        for _ in 0..10 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("kv.sqlite3");
            let opened: Vec<_> = std::thread::scope(|scope| {
                let open = || SqliteEngine::open(&path, false, Duration::from_secs(30)).map(|_| ());
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(opened, vec![Ok(()); 8]);
        }
    }

    #[test]
    fn only_commits_of_other_processes_are_noticed() {
        let (engine, directory) = fresh();
        let path = directory.path().join("kv");
        let other = SqliteEngine::open(&path, false, Duration::from_secs(5)).unwrap();
        let (wake, woken) = mpsc::channel();
        let mut ours = engine.writer().unwrap();
        commit(&mut ours, vec![write(vec![], vec![set("a", b"0")])]);
        let watch = engine
            .watch_external(Box::new(move |commits| wake.send(commits.clone()).unwrap()))
            .unwrap();
        let mut theirs = other.writer().unwrap();
        commit(&mut theirs, vec![write(vec![], vec![set("a", b"1")])]);
        let commits = woken.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(commits, crate::ExternalCommits::Unknown);
        drop(watch);
        // The same commit may have been announced twice before; the guard ends the watch.
        let rest = || woken.recv_timeout(Duration::from_secs(10));
        let end = std::iter::repeat_with(rest).find_map(std::result::Result::err);
        assert_eq!(end, Some(mpsc::RecvTimeoutError::Disconnected));
    }
}

#[cfg(unix)]
mod postgres;
