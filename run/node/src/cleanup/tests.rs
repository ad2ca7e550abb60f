use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use phalanx_dvm::DirectoryRules;

use super::*;

fn job() -> Nspace {
    Nspace::new("a job@1").unwrap()
}

fn text(path: &Path) -> Text {
    Text::from_bytes(path.as_os_str().as_bytes())
}

fn all() -> DirectoryRules {
    DirectoryRules { recursive: true, ..DirectoryRules::default() }
}

/// Removes a path and returns the error, if any.
fn go(path: &Path, what: Cleanup, ignored: &[&str]) -> io::Result<()> {
    remove::remove(&text(path), what, &ignored.iter().map(|name| Text::from(*name)).collect())
}

/// `top` with two nested empty directories and a directory of two files; a link beside them leads to `outside`.
fn lay(place: &Path) -> (PathBuf, PathBuf) {
    let (top, outside) = (place.join("top"), place.join("outside"));
    let _ = fs::remove_dir_all(&top);
    fs::create_dir_all(top.join("empty/empty")).unwrap();
    fs::create_dir_all(top.join("full")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("precious"), "").unwrap();
    fs::write(top.join("full/keep"), "").unwrap();
    fs::write(top.join("full/file"), "").unwrap();
    symlink(&outside, top.join("link")).unwrap();
    (top, outside)
}

#[test]
fn directories_go_as_far_as_was_asked() {
    let place = tempfile::tempdir().unwrap();
    let remove = |rules: DirectoryRules, ignored: &[&str]| {
        let (top, outside) = lay(place.path());
        go(&top, Cleanup::Directory(rules), ignored).unwrap();
        assert!(outside.join("precious").exists());
        top
    };
    assert!(!remove(all(), &[]).exists());
    let top = remove(DirectoryRules { leave_top: true, ..all() }, &[]);
    assert_eq!(fs::read_dir(&top).unwrap().count(), 0);
    let top = remove(DirectoryRules { only_empty: true, ..all() }, &[]);
    assert!(!top.join("empty").exists() && top.join("full/file").exists() && top.join("link").exists());
    let top = remove(all(), &["keep"]);
    assert!(top.join("full/keep").exists() && !top.join("full/file").exists() && !top.join("empty").exists());
    let top = remove(all(), &[top.join("full").to_str().unwrap()]);
    assert!(top.join("full/file").exists() && !top.join("empty").exists());
    let top = remove(DirectoryRules::default(), &[]);
    assert!(top.join("empty/empty").exists() && top.join("link").symlink_metadata().is_err());
}

#[test]
fn a_path_that_has_become_a_link_leads_nowhere() {
    let place = tempfile::tempdir().unwrap();
    let (top, outside) = lay(place.path());
    // A registered file: the link itself goes.
    let file = place.path().join("file");
    symlink(outside.join("precious"), &file).unwrap();
    go(&file, Cleanup::File, &[]).unwrap();
    assert!(file.symlink_metadata().is_err() && outside.join("precious").exists());
    // A registered directory.
    let dir = place.path().join("dir");
    symlink(&outside, &dir).unwrap();
    assert_eq!(go(&dir, Cleanup::Directory(all()), &[]).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    // A link on the way, in a place where anybody may put it.
    let open = place.path().join("open");
    fs::create_dir(&open).unwrap();
    rustix::fs::chmod(&open, rustix::fs::Mode::from_raw_mode(0o1777)).unwrap();
    symlink(place.path(), open.join("way")).unwrap();
    for (path, what) in [("way/outside/precious", Cleanup::File), ("way/outside", Cleanup::Directory(all()))]
    {
        let refused = go(&open.join(path), what, &[]).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()), "{refused}");
    }
    assert!(outside.join("precious").exists() && top.exists());
    // In the user's own directory, the user is responsible.
    let own = place.path().join("own");
    symlink("top/../outside", &own).unwrap();
    go(&own.join("precious"), Cleanup::File, &[]).unwrap();
    assert!(!outside.join("precious").exists() && own.symlink_metadata().is_ok());
    symlink("round", place.path().join("round")).unwrap();
    assert!(go(&place.path().join("round/file"), Cleanup::File, &[]).is_err());
}

#[test]
fn paths_that_have_been_replaced_stay() {
    let place = tempfile::tempdir().unwrap();
    let (top, outside) = lay(place.path());
    assert_eq!(go(&top, Cleanup::File, &[]).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    let file = outside.join("precious");
    assert_eq!(go(&file, Cleanup::Directory(all()), &[]).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    assert_eq!(
        go(&place.path().join("none"), Cleanup::File, &[]).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    assert!(file.exists() && top.exists());
}

#[test]
fn files_of_other_users_stay() {
    let place = tempfile::tempdir().unwrap();
    let (top, _) = lay(place.path());
    let theirs = top.join("full/keep");
    if std::os::unix::fs::chown(&theirs, Some(65_534), None).is_err() {
        // Only root can give files away; other users test with a file of root's.
        let refused = go(Path::new("/etc/passwd"), Cleanup::File, &[]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        return;
    }
    assert_eq!(go(&theirs, Cleanup::File, &[]).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    go(&top, Cleanup::Directory(all()), &[]).unwrap();
    assert!(theirs.exists() && !top.join("full/file").exists() && !top.join("empty").exists());
    // A link of another user on the way, though the directory is ours.
    let link = place.path().join("link");
    symlink(&top, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    fs::write(top.join("file"), "").unwrap();
    assert!(go(&link.join("file"), Cleanup::File, &[]).is_err() && top.join("file").exists());
}

#[test]
fn trees_have_a_bottom() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().join("top");
    let deep: PathBuf = std::iter::repeat_n("d", 60).collect();
    fs::create_dir_all(top.join(deep)).unwrap();
    go(&top, Cleanup::Directory(all()), &[]).unwrap();
    assert!(!top.exists());
    let too_deep: PathBuf = std::iter::repeat_n("d", 200).collect();
    fs::create_dir_all(top.join(&too_deep)).unwrap();
    fs::write(top.join("file"), "").unwrap();
    assert!(go(&top, Cleanup::Directory(all()), &[]).is_err());
    assert!(top.join(too_deep).exists() && !top.join("file").exists());
}

#[test]
fn many_files_go() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().join("top");
    fs::create_dir(&top).unwrap();
    (0..3000).for_each(|n| fs::write(top.join(n.to_string()), "").unwrap());
    go(&top, Cleanup::Directory(DirectoryRules::default()), &[]).unwrap();
    assert!(!top.exists());
}

fn dir(session: &Path) -> PrivateDir {
    PrivateDir::at(session)
}

#[test]
fn due_paths_are_removed_now_the_rest_with_the_job() {
    let (session, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (top, _) = lay(place.path());
    let [first, second] = ["a", "b"].map(|name| place.path().join(name));
    let mut cleanups = Cleanups::default();
    for file in [&first, &second] {
        fs::write(file, "").unwrap();
        cleanups.register(Some(&dir(session.path())), &job(), text(file), Cleanup::File);
    }
    cleanups.register(Some(&dir(session.path())), &job(), text(&top), Cleanup::Directory(all()));
    cleanups.register(Some(&dir(session.path())), &job(), "keep".into(), Cleanup::Ignored);
    cleanups.clean(&job(), &[text(&first)]);
    assert!(!first.exists() && second.exists() && top.exists());
    cleanups.job_ended(&job());
    assert!(!second.exists() && top.join("full/keep").exists() && !top.join("full/file").exists());
}

#[test]
fn the_journal_tells_what_is_left_to_do() {
    let (session, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (top, outside) = lay(place.path());
    let odd = place.path().join("odd %20\nname");
    let done = place.path().join("done");
    let mut cleanups = Cleanups::default();
    for file in [&odd, &done] {
        fs::write(file, "").unwrap();
        cleanups.register(Some(&dir(session.path())), &job(), text(file), Cleanup::File);
    }
    let rules = DirectoryRules { leave_top: true, ..all() };
    cleanups.register(Some(&dir(session.path())), &job(), text(&top), Cleanup::Directory(all()));
    cleanups.register(Some(&dir(session.path())), &job(), text(&top), Cleanup::Directory(rules));
    cleanups.register(Some(&dir(session.path())), &job(), "keep".into(), Cleanup::Ignored);
    let other = Nspace::new("other@1").unwrap();
    cleanups.register(Some(&dir(session.path())), &other, text(&outside.join("precious")), Cleanup::File);
    // What goes with the session needs no journal.
    cleanups.register(Some(&dir(session.path())), &job(), text(&session.path().join("x/y")), Cleanup::File);
    cleanups.clean(&job(), &[text(&done)]);
    cleanups.job_ended(&other);
    // As far as we know, another process may own these by now.
    fs::write(&done, "").unwrap();
    fs::write(outside.join("precious"), "").unwrap();

    let mut expected = cleanups.jobs.clone();
    expected.get_mut(&job()).unwrap().paths.remove(&text(&session.path().join("x/y")));
    assert_eq!(journal::read(&dir(session.path())), expected);
    carry_out_journal(&dir(session.path()));
    assert!(!odd.exists() && done.exists() && outside.join("precious").exists());
    assert_eq!(fs::read_dir(&top).unwrap().count(), 1);
}

#[test]
fn a_long_journal_is_written_anew() {
    let session = tempfile::tempdir().unwrap();
    let mut cleanups = Cleanups::default();
    let path = |n: usize| Text::from(format!("/nowhere/{n}/{}", "x".repeat(3000)));
    cleanups.register(Some(&dir(session.path())), &job(), "/nowhere/kept".into(), Cleanup::File);
    for n in 0..2000 {
        cleanups.register(Some(&dir(session.path())), &job(), path(n), Cleanup::File);
        cleanups.clean(&job(), &[path(n)]);
    }
    assert!(fs::metadata(session.path().join("cleanup")).unwrap().len() < 2 << 20);
    assert_eq!(journal::read(&dir(session.path())), cleanups.jobs);
    assert_eq!(fs::read_dir(session.path()).unwrap().count(), 1);
}

#[test]
fn a_journal_that_is_not_ours_is_not_carried_out() {
    let (session, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    Cleanups::default().register(Some(&dir(session.path())), &job(), text(&file), Cleanup::File);
    let journal = session.path().join("cleanup");
    let good = fs::read(&journal).unwrap();

    let header_end = good.iter().position(|b| *b == b'\n').unwrap();
    let mut elsewhere = b"cleanup 1234 mnt:[1]".to_vec();
    elsewhere.extend_from_slice(&good[header_end..]);
    let torn = &good[..good.len() - 1];
    for bad in [elsewhere.as_slice(), torn, b"", &good[header_end + 1..]] {
        fs::write(&journal, bad).unwrap();
        carry_out_journal(&dir(session.path()));
    }
    fs::write(&journal, &good).unwrap();
    let mode = |path: &Path, mode| rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(mode)).unwrap();
    mode(session.path(), 0o777);
    carry_out_journal(&dir(session.path()));
    mode(session.path(), 0o700);
    mode(&journal, 0o622);
    carry_out_journal(&dir(session.path()));
    mode(&journal, 0o600);
    let beside = place.path().join("beside");
    fs::rename(&journal, &beside).unwrap();
    symlink(&beside, &journal).unwrap();
    carry_out_journal(&dir(session.path()));
    assert!(file.exists());
    fs::rename(&beside, &journal).unwrap();
    carry_out_journal(&dir(session.path()));
    assert!(!file.exists());
}
