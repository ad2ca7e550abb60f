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
fn trouble_is_reported_once_and_names_the_file() {
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

/// A named pipe.
fn pipe(dir: &tempfile::TempDir) -> PathBuf {
    let path = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    path
}

fn reader_of(pipe: &Path) -> File {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(pipe).expect("a reader")
}

#[test]
fn a_pipe_gets_everything_as_its_reader_takes_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = pipe(&dir);
    let mut reader = reader_of(&path);
    let mut set = FileSet::new(Files::one(&bytes(&dir, "pipe"))).taking_pipes();
    let text = "x".repeat(1 << 20);
    say(&mut set, 0, &text);
    let pending = set.pending();
    assert!(pending > 0 && set.idle_since().is_some(), "{pending} bytes wait");
    let (mut seen, mut piece) = (0, vec![0; 1 << 16]);
    while seen < text.len() {
        seen += io::Read::read(&mut reader, &mut piece).expect("some");
        set.retry();
    }
    assert_eq!((set.pending(), set.take_trouble()), (0, None));
    // The pipe has lost its reader.
    drop(reader);
    say(&mut set, 0, "lost");
    assert!(set.take_trouble().is_some());
    assert_eq!((set.pending(), set.undelivered()), (0, 4));
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = Outlet::open(&pipe(&dir)).expect_err("it has no reader");
    assert_eq!(error.to_string(), "it is a pipe that nobody reads");
    assert!(Outlet::open(&dir.path().join("none")).expect("no file yet").is_none());
}

#[test]
fn a_reader_that_stops_reading_is_given_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = pipe(&dir);
    let reader = reader_of(&path);
    let outlet = Outlet::open(&path).expect("it is read").expect("a pipe");
    let written = outlet.write_patiently(&vec![b'x'; 1 << 20], Duration::from_millis(50));
    assert_eq!(written.expect_err("it is full").to_string(), "its reader has stopped reading");
    drop(reader);
}
