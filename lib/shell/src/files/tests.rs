use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use phalanx_core::output::Stream;

use super::*;

fn stream(rank: u32, channel: Channel) -> Stream {
    Stream { proc: ProcId::new(&Nspace::new("job@1").expect("a name"), Rank(rank)), channel }
}

fn bytes(dir: &tempfile::TempDir, name: &str) -> Vec<u8> {
    dir.path().join(name).into_os_string().into_vec()
}

fn say(set: &mut FileSet, rank: u32, text: &str) {
    let stream = stream(rank, Channel::Stdout);
    let source = Source { stream: &stream, host: Some("n1"), pid: None, job: Some(1), rank_width: 3 };
    set.data(Time::default(), &source, Channel::Stdout, text.as_bytes());
}

#[test]
fn each_rank_has_its_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut set = FileSet::new(Files::per_stream(&bytes(&dir, "deep/er/out")));
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
    let mut set = FileSet::new(Files::pattern(&bytes(&dir, "all")).expect("a pattern"));
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
    let mut set = FileSet::new(Files::directory(&bytes(&dir, "file")));
    say(&mut set, 0, "x");
    say(&mut set, 1, "x");
    let trouble = set.take_trouble().expect("trouble");
    assert!(trouble.path.ends_with("file/rank.0/stdout") && !trouble.reason.is_empty(), "{trouble}");
    say(&mut set, 0, "x");
    assert_eq!(set.take_trouble(), None);
}
