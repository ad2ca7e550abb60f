//! Ranks that break the protocol: the server reports that or drops them, and all others continue.
//!
//! Rank 0 is `programs/hostile.py`; the other ranks start working only after its attack. The launcher's memory is
//! watched throughout.

use phalanx_interop::{Outcome, debian_file, new_directory, pmix, px, script};

const FRIENDS: u32 = 3;

/// Most memory that the launcher may use during an attack on it. An ordinary job takes a fraction of it.
const MOST_KIB: u64 = 96 * 1024;

#[test]
fn garbage_instead_of_a_handshake() {
    mischief("garbage", &["closed"]);
}

#[test]
fn a_handshake_of_two_gigabytes() {
    mischief("huge_hello", &["closed"]);
}

#[test]
fn half_a_handshake() {
    mischief("half_hello", &["sent half"]);
}

#[test]
fn a_thousand_connections_that_say_nothing() {
    mischief("silence", &["opened 1000"]);
}

#[test]
fn handshakes_with_wrong_words() {
    for word in [
        "wrong_codec",
        "wrong_security",
        "unknown_nspace",
        "unknown_rank",
        "unknown_flag",
        "foreign_credential",
    ] {
        mischief(word, &["closed", "answered 8 bytes"]);
    }
}

#[test]
fn a_message_of_four_gigabytes() {
    mischief("huge_frame", &["closed"]);
}

#[test]
fn a_command_nobody_knows() {
    mischief("unknown_command", &["status -47"]);
}

#[test]
fn a_value_of_an_unknown_type() {
    mischief("unknown_type", &["status -16", "status -20", "status -27"]);
}

#[test]
fn two_to_the_forty_elements() {
    mischief("many_elements", &["status -20 and -20", "status -27 and -27", "status -32 and -32"]);
}

#[test]
fn arrays_in_arrays_in_arrays() {
    mischief("deep_nesting", &["status -20", "status -27"]);
}

#[test]
fn a_message_that_ends_too_early() {
    mischief("truncated", &["status -20", "status -27", "status -50"]);
}

#[test]
fn a_client_that_never_reads() {
    mischief("unread_replies", &["stopped listening"]);
}

#[test]
fn finalize_sent_twice() {
    let outcome = mischief("finalize_twice", &["answered"]);
    assert!(outcome.stdout.contains("finalize_twice: answered 2 bytes, then "), "{outcome}");
}

#[test]
fn the_same_rank_connected_twice() {
    mischief("second_connection", &["both served"]);
}

#[test]
fn a_rank_that_connects_again_and_again() {
    mischief("connection_flood", &["closed after 128"]);
}

/// Runs one kind of attack and checks that the others are not disturbed. `verdicts` are the beginnings of the server's
/// permitted reactions.
fn mischief(name: &str, verdicts: &[&str]) -> Outcome {
    let python = debian_file("/usr/bin/python3", "python3");
    let meeting = new_directory();
    let friends = FRIENDS.to_string();
    let outcome = px(["-n", "1"])
        .arg(python)
        .arg(script("hostile.py"))
        .args([name, &friends, ":", "-n", &friends])
        .arg(pmix("bystander"))
        .env("INTEROP_MEETING", meeting.path())
        .run()
        .expect_ended()
        .expect_nothing_left();
    for rank in 1..=FRIENDS {
        outcome.assert_line(&format!("rank {rank} of {}: not disturbed", FRIENDS + 1));
    }
    let verdict = outcome.stdout.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    let fine = verdict.is_some_and(|verdict| verdicts.iter().any(|expected| verdict.starts_with(expected)));
    assert!(fine, "expected one of {verdicts:?}\n{outcome}");
    assert!(outcome.peak_rss_kib < MOST_KIB, "the launcher grew to {} KiB\n{outcome}", outcome.peak_rss_kib);
    outcome
}
