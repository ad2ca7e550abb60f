use phalanx_spec::keys;
use phalanx_wire::{Info, Nspace, ProcId};

use super::*;
use crate::msg::DirectoryRules;

fn request(directives: &[Info]) -> CleanupRequest {
    CleanupRequest::read(directives).unwrap().unwrap()
}

fn file(path: &str) -> Info {
    Info::new(keys::REGISTER_CLEANUP, path)
}

fn dir(path: &str) -> Info {
    Info::new(keys::REGISTER_CLEANUP_DIR, path)
}

fn ignore(path: &str) -> Info {
    Info::new(keys::CLEANUP_IGNORE, path)
}

fn flag(key: &'static str) -> Info {
    Info::new(key, true)
}

/// Checks and enters a request for these ranks; returns what was new.
fn enter(to: &mut Cleanups, directives: &[Info], ranks: &[u32]) -> Result<Vec<(String, Cleanup)>, Status> {
    let request = request(directives);
    to.check(&request, 10_000)?;
    let mut told = Vec::new();
    let ranks = ranks.iter().copied().collect();
    to.enter(&request, &ranks, |path, what| told.push((path.to_string(), what)));
    Ok(told)
}

#[test]
fn directives_are_read() {
    let list = request(&[
        file("/a/b,,/c//d/./e/"),
        file("/f/g"),
        dir("/h/i"),
        ignore("core,/h/i/keep"),
        flag(keys::CLEANUP_RECURSIVE),
        flag(keys::CLEANUP_EMPTY),
        Info::new(keys::CLEANUP_LEAVE_TOPDIR, false),
    ]);
    let texts = |set: &BTreeSet<Text>| set.iter().map(Text::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&list.files), ["/a/b", "/c/d/e", "/f/g"]);
    assert_eq!(texts(&list.directories), ["/h/i"]);
    assert_eq!(texts(&list.ignored), ["/h/i/keep", "core"]);
    assert_eq!(list.rules, DirectoryRules { recursive: true, only_empty: true, leave_top: false });
    assert_eq!(CleanupRequest::read(&[flag(keys::JOB_CTRL_KILL)]), Ok(None));
}

#[test]
fn paths_that_may_lead_anywhere_are_refused() {
    let long = format!("/a/{}", "x".repeat(5000));
    for bad in ["a", "./a/b", "/", "//", "/tmp", "/tmp/.", "/a/../b", "/a/..", "", ",", &long] {
        for directive in [file(bad), dir(bad)] {
            assert_eq!(CleanupRequest::read(&[directive]), Err(Status::ERR_BAD_PARAM), "{bad}");
        }
    }
    for bad in ["..", ".", "a/b", "/a/../b"] {
        let read = CleanupRequest::read(&[file("/a/b"), ignore(bad)]);
        assert_eq!(read, Err(Status::ERR_BAD_PARAM), "{bad}");
    }
    for bad in [Info::new(keys::REGISTER_CLEANUP, 1u32), flag(keys::CLEANUP_RECURSIVE)] {
        assert_eq!(CleanupRequest::read(&[bad]), Err(Status::ERR_BAD_PARAM));
    }
}

#[test]
fn contradictions_are_refused() {
    let requests: &[&[Info]] = &[
        &[file("/a/b"), ignore("/a/b")],
        &[ignore("/a//b/"), file("/a/b")],
        &[dir("/a/b"), ignore("/a/b")],
        &[file("/a/b"), ignore("b")],
        &[file("/a/b"), dir("/a/b")],
    ];
    for directives in requests {
        let refused = enter(&mut Cleanups::default(), directives, &[0]);
        assert_eq!(refused, Err(Status::ERR_CONFLICTING_CLEANUP_DIRECTIVES), "{directives:?}");
    }
    let agree: &[&[Info]] = &[
        &[dir("/a/b"), ignore("/a/b/c"), file("/a/b/d")],
        &[file("/a/b"), file("/a/b"), ignore("c")],
        &[dir("/a/b"), flag(keys::CLEANUP_EMPTY), flag(keys::CLEANUP_RECURSIVE)],
    ];
    for directives in agree {
        enter(&mut Cleanups::default(), directives, &[0]).unwrap();
    }
}

#[test]
fn contradicting_cleanup_orders_are_refused_whole() {
    let mut table = Cleanups::default();
    enter(&mut table, &[file("/a/file"), dir("/a/dir"), ignore("/a/dir/keep,core")], &[0]).unwrap();
    let bad: &[&[Info]] = &[
        &[file("/a/new"), dir("/a/file")],
        &[file("/a/new"), file("/a/dir")],
        &[file("/a/new"), ignore("/a/file")],
        &[file("/a/new"), ignore("dir")],
        &[file("/a/new"), file("/a/dir/keep")],
        &[file("/a/new"), dir("/b/core")],
        &[file("/a/new"), dir("/a/dir"), flag(keys::CLEANUP_EMPTY)],
    ];
    for directives in bad {
        let refused = enter(&mut table, directives, &[1]);
        assert_eq!(refused, Err(Status::ERR_CONFLICTING_CLEANUP_DIRECTIVES), "{directives:?}");
    }
    assert_eq!((table.removals.len(), table.ignored.len()), (2, 2));
}

#[test]
fn a_directory_goes_as_far_as_anybody_wants() {
    let mut table = Cleanups::default();
    let told = enter(&mut table, &[dir("/a/dir")], &[0]).unwrap();
    assert_eq!(told, [("/a/dir".to_owned(), Cleanup::Directory(DirectoryRules::default()))]);
    let told = enter(&mut table, &[dir("/a/dir"), flag(keys::CLEANUP_RECURSIVE)], &[1]).unwrap();
    let recursive = DirectoryRules { recursive: true, ..DirectoryRules::default() };
    assert_eq!(told, [("/a/dir".to_owned(), Cleanup::Directory(recursive))]);
    let told = enter(&mut table, &[dir("/a/dir"), flag(keys::CLEANUP_LEAVE_TOPDIR)], &[2]).unwrap();
    let both = DirectoryRules { leave_top: true, ..recursive };
    assert_eq!(told, [("/a/dir".to_owned(), Cleanup::Directory(both))]);
    assert_eq!(enter(&mut table, &[dir("/a/dir")], &[3]), Ok(vec![]));
}

#[test]
fn files_are_due_when_nobody_keeps_them() {
    let mut table = Cleanups::default();
    enter(&mut table, &[file("/a/one,/a/two")], &[0, 1]).unwrap();
    enter(&mut table, &[file("/a/two")], &[2]).unwrap();
    enter(&mut table, &[file("/a/two")], &[2]).unwrap();
    enter(&mut table, &[dir("/a/dir"), ignore("/a/dir/keep")], &[2]).unwrap();
    assert_eq!(table.ended(Rank(0)), [] as [&str; 0]);
    assert_eq!(table.ended(Rank(1)), ["/a/one"]);
    assert_eq!(table.ended(Rank(1)), [] as [&str; 0]);
    assert_eq!(table.ended(Rank(2)), ["/a/two"]);
    assert_eq!(table.all_ended(), ["/a/dir"]);
    assert_eq!(table.all_ended(), [] as [&str; 0]);
    assert_eq!((table.bytes, table.files.len()), (cost(&"/a/dir/keep".into()), 0));
}

#[test]
fn a_job_leaves_so_much_and_no_more() {
    let mut table = Cleanups::default();
    let mut entered = 0;
    let refused = loop {
        match enter(&mut table, &[file(&format!("/a/{entered:030}"))], &[entered]) {
            Ok(_) => entered += 1,
            Err(status) => break status,
        }
    };
    assert_eq!((refused, entered), (Status::ERR_OUT_OF_RESOURCE, 10_000 / (33 + 64)));
    // A path that is already registered costs nothing.
    enter(&mut table, &[file(&format!("/a/{:030}", 0))], &[7]).unwrap();
    table.ended(Rank(1));
    enter(&mut table, &[file(&format!("/a/{:030}", 1))], &[7]).unwrap();
}

#[test]
fn unknown_attributes_are_no_cleanup_orders() {
    let from = ProcId::new(&Nspace::new("job").unwrap(), Rank(0));
    let read = |directives: &[Info]| crate::msg::ControlCall::read(&from, directives).map(drop);
    assert_eq!(read(&[file("/a/b"), flag("pmix.clnup.shred")]), Ok(()));
    assert_eq!(read(&[flag("pmix.clnup.shred")]), Err(Status::ERR_NOT_SUPPORTED));
}
