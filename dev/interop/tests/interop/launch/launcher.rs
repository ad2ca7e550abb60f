//! `px run` as a launcher of programs that may not use PMIx: starting, streams, exit codes, environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use phalanx_interop::{Job, Outcome, host, new_directory, pmix, px, px_binary, write_program};

#[test]
fn a_missing_program_is_named_with_node_and_reason() {
    let outcome = px(["-n", "2", "/nowhere/program"]).run().expect_code(127).expect_nothing_left();
    outcome.expect_stderr(&["/nowhere/program", "o such file or directory", &host()]);
    let outcome = px(["-n", "1", "no-such-program-anywhere"]).run().expect_code(127);
    outcome.expect_stderr(&["no-such-program-anywhere", "PATH"]);
}

#[test]
fn a_program_that_cannot_be_executed_is_named_with_the_reason() {
    let place = new_directory();
    let file = |name: &str, text: &str, mode: u32| {
        let path = place.path().join(name);
        write_program(&path, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("setting permissions");
        path
    };
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    px(["-n", "1"]).arg(&plain).run().expect_code(126).expect_stderr(&["plain", "ermission denied"]);
    let orphan = file("orphan", "#!/no/such/interpreter\n", 0o755);
    let outcome = px(["-n", "1"]).arg(&orphan).run().expect_failure();
    outcome.expect_stderr(&["orphan", "/no/such/interpreter"]);
    let noise = file("noise", "\u{1}\u{2}\u{3}", 0o755);
    px(["-n", "1"]).arg(&noise).run().expect_code(126).expect_stderr(&["noise", "xec format error"]);
    px(["-n", "1"]).arg(place.path()).run().expect_code(126).expect_stderr(&["s a directory"]);
}

#[test]
fn the_first_failure_decides_the_exit_code() {
    shell(4, r#"test "$PMIX_RANK" != 2 || exit 42"#).expect_code(42).expect_stderr(&["rank 2", "42"]);
    shell(4, r#"test "$PMIX_RANK" != 3 || kill -KILL $$"#)
        .expect_code(128 + 9)
        .expect_stderr(&["rank 3", "SIGKILL"]);
    shell(4, r#"test "$PMIX_RANK" != 1 || kill -TERM $$"#)
        .expect_code(128 + 15)
        .expect_stderr(&["rank 1", "SIGTERM"]);
    shell(4, "exit 0").expect_code(0).expect_stderr(&[]);
}

#[test]
fn the_timeout_ends_ranks_that_ignore_it() {
    let script = "trap '' TERM INT HUP; while :; do sleep 1000; done";
    let outcome = px(["--timeout", "1", "-n", "3", "sh", "-c", script]).run();
    outcome.expect_code(124).expect_nothing_left();
}

#[test]
fn lines_of_different_ranks_never_mix() {
    let script = r#"i=0; while [ $i -lt 2000 ]; do echo "$PMIX_RANK:$i:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; i=$((i+1)); done"#;
    let outcome = shell(8, script).expect_code(0);
    let mut next = [0; 8];
    for line in outcome.stdout.lines() {
        let mut fields = line.split(':');
        let mut number = || fields.next().and_then(|field| field.parse::<usize>().ok());
        let (rank, at) = (number(), number());
        let whole = line.ends_with(":aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert!(
            whole && rank.is_some_and(|rank| Some(next[rank]) == at),
            "a line is torn or out of order: {line}"
        );
        next[rank.unwrap_or_default()] += 1;
    }
    assert_eq!(next, [2000; 8], "{outcome}");
}

#[test]
fn output_without_a_newline_at_its_end_is_kept() {
    let outcome = px(["-n", "1", "printf", "one\\ntwo"]).run().expect_code(0);
    assert!(outcome.stdout.starts_with("one\ntwo"), "{outcome}");
}

#[test]
fn standard_input_goes_to_the_first_rank_and_ends_there() {
    let text: String = (0..50_000).map(|i| format!("line {i} of the input\n")).collect();
    let outcome = px(["-n", "3", "cat"]).input(text.as_bytes()).run().expect_code(0);
    assert!(outcome.stdout == text, "{} of {} bytes came back", outcome.stdout.len(), text.len());
}

#[test]
fn tags_and_json_say_whose_output_it_is() {
    let script = r#"echo "out of $PMIX_RANK"; echo "err of $PMIX_RANK" >&2"#;
    let outcome = px(["--output", "tag", "-n", "2", "sh", "-c", script]).run().expect_code(0);
    for (rank, line) in [("0", "out of 0"), ("1", "out of 1")] {
        let tagged = |l: &&str| l.contains(rank) && l.ends_with(line) && l.len() > line.len();
        assert!(outcome.stdout.lines().any(|l| tagged(&l)), "no tagged {line:?}\n{outcome}");
    }
    let outcome = px(["--output", "json", "-n", "2", "sh", "-c", script]).run().expect_code(0);
    let mut said = Vec::new();
    for line in outcome.stdout.lines() {
        let object: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}\n{outcome}"));
        said.push(object.to_string());
    }
    for text in ["out of 0", "out of 1", "err of 0", "err of 1"] {
        assert!(said.iter().any(|object| object.contains(text)), "no object with {text:?}\n{outcome}");
    }
}

#[test]
fn several_programs_share_one_job() {
    let program = pmix("values");
    let outcome = px(["-n", "1"]).arg(&program).args([":", "-n", "3"]).arg(&program).run().expect_code(0);
    outcome.expect_lines((0..4).map(|rank| format!("rank {rank} of 4: all values came back")));
}

#[test]
fn variables_reach_the_ranks_that_they_were_given_to() {
    let script = r#"echo "$PMIX_RANK $COLOUR $SHAPE""#;
    let outcome =
        px(["-x", "COLOUR=red", "-n", "1", "sh", "-c", script, ":", "-x", "SHAPE=round", "-n", "1", "sh"])
            .args(["-c", script])
            .without_env("COLOUR")
            .without_env("SHAPE");
    outcome.run().expect_code(0).expect_lines(["0 red ", "1  round"]);
}

#[test]
fn sixteen_ranks_run_on_any_machine() {
    let outcome = px(["-n", "16"]).arg(pmix("modex")).run().expect_code(0);
    outcome.expect_lines((0..16).map(|rank| format!("rank {rank} of 16: direct modex is right")));
}

#[test]
fn ten_launches_at_once_do_not_disturb_each_other() {
    let program = pmix("names");
    let running: Vec<_> = (0..10).map(|_| px(["-n", "4"]).arg(&program).start()).collect();
    for running in running {
        let outcome = running.wait().expect_code(0).expect_nothing_left();
        outcome.expect_lines(
            (0..4).map(|rank| format!("rank {rank} of 4: publish, lookup and unpublish are right")),
        );
    }
}

#[test]
fn a_long_temporary_directory_works() {
    let place = new_directory();
    let long = place.path().join("d".repeat(120)).join("e".repeat(120));
    fs::create_dir_all(&long).expect("making a directory");
    works(modex().env("TMPDIR", &long));
    assert_eq!(fs::read_dir(&long).expect("listing").count(), 0, "something is left in the long directory");
}

#[test]
fn no_home_and_a_home_that_cannot_be_written_work() {
    works(modex().without_env("HOME"));
    works(modex().env("HOME", "/proc"));
    works(modex().env("HOME", "/nowhere/at/all"));
}

#[test]
fn no_terminal_and_no_standard_input_work() {
    let program = pmix("modex");
    works(Job::new("setsid").arg("--wait").arg(px_binary()).args(["run", "-n", "2"]).arg(&program));
    let closed = Job::new("sh").args(["-c", r#"exec "$@" <&-"#, "sh"]);
    works(closed.arg(px_binary()).args(["run", "-n", "2"]).arg(&program));
}

#[test]
fn ranks_of_an_outer_launcher_are_not_mistaken_for_ours() {
    let inherited = modex().env("PMIX_NAMESPACE", "outer").env("PMIX_RANK", "7");
    let inherited =
        inherited.env("PMIX_SERVER_URI41", "outer.0;tcp4://127.0.0.1:9").env("PMIX_SERVER_URI61", "x");
    works(inherited.env("OMPI_COMM_WORLD_RANK", "7").env("PMI_RANK", "7"));
}

#[test]
fn many_short_jobs_lose_nothing() {
    for round in 0..50 {
        let code = round % 3;
        let script = format!(r#"echo "$PMIX_RANK"; exit {code}"#);
        let outcome =
            px(["--kill-on-bad-exit", "none", "-n", "16", "sh", "-c", &script]).run().expect_code(code);
        outcome.expect_lines((0..16).map(|rank| rank.to_string()));
    }
}

fn modex() -> Job {
    px(["-n", "2"]).arg(pmix("modex"))
}

#[track_caller]
fn works(job: Job) {
    let outcome = job.run().expect_code(0).expect_nothing_left();
    outcome.expect_lines((0..2).map(|rank| format!("rank {rank} of 2: direct modex is right")));
}

/// Runs a shell command in each rank.
#[track_caller]
fn shell(ranks: u32, script: &str) -> Outcome {
    px(["-n", &ranks.to_string(), "sh", "-c", script]).run().expect_nothing_left()
}
