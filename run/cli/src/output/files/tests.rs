use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use super::*;
use crate::output::Stream;

fn stream(rank: u32, channel: Channel) -> Stream {
    Stream { proc: ProcId::new(&Nspace::new("job@1").expect("a name"), Rank(rank)), channel }
}

fn path(files: &Files, rank: u32, channel: Channel) -> String {
    let stream = stream(rank, channel);
    let source = Source { stream: &stream, host: Some("n1"), job: 1, rank_width: 3 };
    files.path(&source, channel).to_string_lossy().into_owned()
}

fn say(set: &mut FileSet, rank: u32, text: &str) {
    let stream = stream(rank, Channel::Stdout);
    let source = Source { stream: &stream, host: Some("n1"), job: 1, rank_width: 3 };
    set.data(Instant::now(), &source, Channel::Stdout, text.as_bytes());
}

#[test]
fn names() {
    let plain = Files::PerStream("out".into());
    assert_eq!(path(&plain, 7, Channel::Stdout), "out.7.out");
    assert_eq!(path(&plain, 7, Channel::Stderr), "out.7.err");
    assert_eq!(path(&Files::Directory("d".into()), 7, Channel::Stderr), "d/rank.7/stderr");
    let pattern = Files::pattern(Path::new("%n/%h-%R-%r.%s.100%%")).expect("a pattern");
    assert_eq!(path(&pattern, 7, Channel::Stdout), "job@1/n1-007-7.stdout.100%");
}

#[test]
fn each_rank_has_its_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut set = FileSet::new(Files::PerStream(dir.path().join("deep/er/out")));
    for rank in 0..1000 {
        say(&mut set, rank, "a");
    }
    for rank in 0..1000 {
        say(&mut set, rank, &format!("b{rank}"));
    }
    set.finish();
    assert_eq!(set.take_trouble(), None);
    for rank in 0..1000 {
        let text =
            std::fs::read_to_string(dir.path().join(format!("deep/er/out.{rank}.out"))).expect("a file");
        assert_eq!(text, format!("ab{rank}"));
    }
}

#[test]
fn lines_of_ranks_that_share_a_file_do_not_mix() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut set = FileSet::new(Files::pattern(&dir.path().join("all")).expect("a pattern"));
    say(&mut set, 0, "from ");
    say(&mut set, 1, "from 1\n");
    say(&mut set, 0, "0\nlast of 0");
    say(&mut set, 1, "last of 1");
    set.finish();
    let text = std::fs::read_to_string(dir.path().join("all")).expect("a file");
    assert_eq!(text, "from 1\nfrom 0\nlast of 0\nlast of 1");
}

#[test]
fn trouble_is_told_once_and_names_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), "").expect("a file");
    let mut set = FileSet::new(Files::Directory(dir.path().join("file")));
    say(&mut set, 0, "x");
    say(&mut set, 1, "x");
    let failure = set.take_trouble().expect("a failure");
    assert!(failure.message.contains("file/rank.0/stdout"), "{failure}");
    assert!(!failure.causes.is_empty());
    say(&mut set, 0, "x");
    assert_eq!(set.take_trouble(), None);
}
