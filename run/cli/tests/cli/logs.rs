//! `px log`: the record of a job.

use crate::control::{OwnTmp, said};

#[test]
fn the_record_of_a_job_is_written_and_shown() {
    let place = OwnTmp::new();
    let started = place.px(&["dvm", "start", "--daemonize"]);
    assert!(started.status.success(), "{started:?}");
    let name = said(&started.stdout).split_whitespace().next().unwrap_or_default().to_owned();
    let script = "until [ -e go ]; do sleep 0.02; done";
    let run = place.px(&["run", "-q", "--detach", "--nspace", &name, "-n", "1", "sh", "-c", script]);
    let job = said(&run.stdout).trim().to_owned();
    assert!(job.contains('@'), "{run:?}");

    let empty = place.px(&["log", &job]);
    assert_eq!((empty.status.code(), said(&empty.stdout)), (Some(0), String::new()), "{empty:?}");
    for words in [&["checked", "by hand"][..], &["a\u{1b}[2J\nb"]] {
        let wrote = place.px(&[&["log", &*job], words].concat());
        assert!(wrote.status.success() && wrote.stdout.is_empty() && wrote.stderr.is_empty(), "{wrote:?}");
    }
    let shown = said(&place.px(&["log", &job]).stdout);
    let [first, second, more] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
    assert!(first.starts_with("20") && first.ends_with(":0: checked by hand"), "{shown}");
    assert!(second.ends_with(":0: a\\u001b[2J") && more == "  b", "{shown}");
    let objects = said(&place.px(&["log", "--json", &job]).stdout);
    let first: serde_json::Value =
        serde_json::from_str(objects.lines().next().unwrap_or_default()).expect("JSON");
    assert_eq!((&first["type"], &first["text"]), (&"logged".into(), &"checked by hand".into()));
    assert_eq!(first["job"], *job);

    std::fs::write(place.path("go"), "").expect("a file");
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(0));
    let late = place.px(&["log", &job, "too late"]);
    let why = format!("px: error: cannot write to the record of job {job}: job {job} has ended\n");
    assert_eq!((late.status.code(), said(&late.stderr)), (Some(1), why));
    assert_eq!(said(&place.px(&["log", &job]).stdout).lines().count(), 3);
    let unknown = place.px(&["log", "--nspace", &name, "x@1", "text"]);
    let why = "px: error: cannot write to the record of job x@1: no job x@1 is known\n";
    assert_eq!((unknown.status.code(), said(&unknown.stderr)), (Some(1), why.to_owned()));
    assert_eq!(place.px(&["log", "--nspace", &name, "x@1"]).status.code(), Some(1));
    assert_eq!(place.px(&["log", &format!("{job}:0")]).status.code(), Some(2));
    assert!(place.px(&["dvm", "stop", "--nspace", &name]).status.success());
}
