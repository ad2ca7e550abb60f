//! `libpmix.so.2` in C programs of ours, compiled against its own headers.

use phalanx_interop::{Job, SIZES, libpmix, own, px};

#[test]
fn every_declared_function_is_there() {
    let outcome = Job::new(own("exports")).run().expect_code(0);
    outcome.expect_stdout(&["322 functions"]);
}

#[test]
fn functions_that_need_no_server_are_right() {
    Job::new(own("local")).run().expect_code(0).expect_lines(["0 wrong"]);
}

#[test]
fn init_and_finalize_may_be_repeated_and_forked() {
    Job::new(own("lifecycle")).run().expect_code(0).expect_lines(["200 lives"]);
    let outcome = px(["-n", "2"]).arg(own("lifecycle")).run().expect_code(0);
    outcome.expect_lines(["200 lives", "200 lives"]).expect_nothing_left();
}

#[test]
fn children_of_ranks_may_be_the_client_of_their_rank() {
    let outcome = px(["-n", "2"]).arg(own("forked")).run().expect_code(0);
    outcome.expect_lines(["children are right", "children are right"]).expect_nothing_left();
}

#[test]
fn servers_take_modules_of_any_release_again_and_again() {
    Job::new(own("servers")).run().expect_code(0).expect_lines(["200 servers"]);
}

#[test]
fn hosts_tell_of_their_machine_and_prepare_jobs() {
    Job::new(own("machine")).run().expect_code(0).expect_lines(["the machine is right"]);
}

#[test]
fn programs_have_habits() {
    let outcome = px(["-n", "4"]).arg(own("habits")).run().expect_code(0);
    outcome.expect_lines(vec!["habits are honoured"; 4]).expect_nothing_left();
}

#[test]
fn values_have_qualifiers() {
    for ranks in SIZES {
        let outcome = px(["-n", &ranks.to_string()]).arg(own("qualified")).run().expect_code(0);
        let ranks = ranks as usize;
        outcome.expect_lines(vec!["qualifiers are right"; ranks]).expect_nothing_left();
    }
}

#[test]
fn values_nested_too_deeply_are_refused() {
    let outcome = px(["-n", "1"]).arg(own("nested")).run().expect_code(0);
    outcome.expect_lines(["nesting is bounded"]).expect_nothing_left();
}

#[test]
fn the_invited_find_what_the_others_give() {
    for ranks in [1, 2, 8] {
        let outcome = px(["-n", &ranks.to_string()]).arg(own("invited")).run().expect_code(0);
        outcome.expect_lines(vec!["the invited know each other"; ranks]).expect_nothing_left();
    }
}

#[test]
fn fences_collect_values_that_need_no_launcher() {
    for ranks in [1, 4, 16] {
        let job = px(["-n", &ranks.to_string()]).arg(own("collected"));
        job.run().expect_code(0).expect_lines(vec!["nobody was asked"; ranks]).expect_nothing_left();
    }
}

#[test]
fn programs_may_make_progress_themselves() {
    for ranks in [1, 4, 16] {
        let outcome = px(["-n", &ranks.to_string()]).arg(own("progress")).run().expect_code(0);
        outcome.expect_lines(vec!["progress is ours"; ranks]).expect_nothing_left();
    }
}

#[test]
fn programs_may_take_progress_over() {
    for ranks in [1, 4] {
        let outcome = px(["-n", &ranks.to_string()]).arg(own("handover")).run().expect_code(0);
        outcome.expect_lines(vec!["progress was handed over"; ranks]).expect_nothing_left();
    }
}

#[test]
fn the_library_speaks_only_when_it_is_asked() {
    let program = own("verbose");
    for silent in ["", "0"] {
        let outcome = Job::new(&program).env("PMIX_DEBUG", silent).run().expect_code(0);
        assert_eq!(outcome.stderr, "");
    }
    let outcome = Job::new(&program).env("PMIX_DEBUG", "1").run().expect_code(0);
    let pid = outcome.stdout.trim().rsplit(' ').next().unwrap();
    // Only the process that has called init prints messages.
    let begins = |line: &str| line.starts_with(&format!("libpmix[{pid}] warn: "));
    assert!(outcome.stderr.lines().all(begins), "{outcome}");
    assert!(
        outcome.stderr.lines().any(|line| line.contains("attribute example.unheard.of is required")),
        "{outcome}"
    );
    let more = Job::new(&program).env("PMIX_DEBUG", "4").run().expect_code(0);
    assert!(more.stderr.lines().count() >= outcome.stderr.lines().count(), "{more}");
}

#[test]
fn hosts_may_open_and_close_the_library() {
    let library = libpmix().join("libpmix.so.2");
    Job::new(own("reopened")).arg(&library).run().expect_code(0).expect_lines(["30 times opened"]);
    for ranks in [2, 16] {
        let job = px(["-n", &ranks.to_string()]).arg(own("reopened")).arg(&library);
        job.run().expect_code(0).expect_lines(vec!["30 times opened"; ranks]).expect_nothing_left();
    }
}

#[test]
fn functions_of_later_releases_work() {
    let outcome = px(["-n", "2"]).arg(own("extensions")).run().expect_code(0);
    outcome.expect_lines(["extensions are right", "extensions are right"]).expect_nothing_left();
}
