//! The channels of log requests.

use super::*;
use phalanx_wire::cmd::log::Log;
use phalanx_wire::{DataArray, InfoList};

use crate::msg::LogLine;
use crate::root::query::names;

impl RootScene {
    /// A request of a process of the DVM's user on this node.
    fn log_on(&mut self, node: u32, from: &ProcId, data: Vec<Info>, mut directives: Vec<Info>) -> u64 {
        directives.extend([Info::new(keys::USERID, 1000_u32), Info::new(keys::GRPID, 1000_u32)]);
        self.log_as(node, from, data, directives)
    }

    fn log_as(&mut self, node: u32, from: &ProcId, data: Vec<Info>, directives: Vec<Info>) -> u64 {
        self.wishes.clear();
        let request = Log { data, directives, timestamp: 0 };
        self.ask(node, HostOp::Log(Asked { from: from.clone(), request }))
    }

    /// The status for a process on the root's node, at once.
    fn log_status(&mut self, from: &ProcId, data: Vec<Info>, directives: Vec<Info>) -> Status {
        let request = self.log_on(0, from, data, directives);
        self.status_of(request)
    }

    fn status_of(&self, request: u64) -> Status {
        self.answer(request).map_or_else(|| panic!("{:?}", self.wishes), HostReply::status)
    }

    /// The lines for requesters.
    fn lines(&self) -> Vec<String> {
        let said = self.casts().into_iter().filter_map(|(_, body)| match body {
            Down::Say { text, .. } => Some(text.clone()),
            _ => None,
        });
        let notes = self.reports().into_iter().filter_map(|report| match report {
            Report::Note { text, .. } => Some(text.clone()),
            _ => None,
        });
        said.chain(notes).collect()
    }

    /// The daemons of the last task have done it, or not.
    fn task_ends(&mut self, result: Result<(), &str>) {
        let (_, op, _) = self.task_among();
        let mut results = Results::default();
        let status = result.map_or(Status::ERROR, |()| Status::SUCCESS);
        results.set(&Ranges::single(0), status);
        if let Err(why) = result {
            results.explain(status, why.to_owned());
        }
        self.wishes.clear();
        self.gathered(op, Part::Results(results));
    }

    /// Who has logged what in the record of a job.
    fn recorded(&mut self, nspace: &Nspace) -> Vec<(ProcId, String)> {
        self.wishes.clear();
        let qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
        let queries = Queries { queries: vec![Query { keys: vec![names::HAPPENINGS.into()], qualifiers }] };
        let request = self.ask(0, HostOp::Query(Asked { from: tool(), request: queries }));
        let Some(HostReply::Infos(_, found)) = self.answer(request) else { panic!("{:?}", self.wishes) };
        let all = found.find(names::HAPPENINGS).and_then(Value::as_array).unwrap();
        let about = all.infos().filter_map(|info| info.value.as_array());
        let texts = about.filter_map(|about| {
            let find = |key: &str| about.infos().find(|info| info.key == *key).map(|info| info.value.clone());
            match (find(keys::PROCID)?, find(keys::LOG_MSG)?) {
                (Value::Proc(by), text) => Some((by, text.as_str()?.to_owned())),
                _ => None,
            }
        });
        texts.collect()
    }
}

fn channels(keys: &[&'static str]) -> Vec<Info> {
    let message = Info::new(keys::LOG_MSG, "text");
    keys.iter().map(|key| Info::new(key, true)).chain([message]).collect()
}

fn once() -> Vec<Info> {
    vec![Info::new(keys::LOG_ONCE, true)]
}

fn mail_to(address: &str) -> Vec<Info> {
    let parts = [Info::new(keys::LOG_EMAIL_ADDR, address), Info::new(keys::LOG_EMAIL_MSG, "text")];
    vec![Info::new(keys::LOG_EMAIL, DataArray::of_infos(parts))]
}

#[test]
fn a_message_alone_goes_to_the_record_of_the_job() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 2);
    let rank = proc(&nspace, 1);
    assert_eq!(scene.log_status(&rank, channels(&[]), vec![]), Status::SUCCESS);
    let own = vec![Info::new(keys::LOG_JOB_RECORD, "own\ntext\n")];
    assert_eq!(scene.log_status(&rank, own, vec![]), Status::SUCCESS);
    scene.connect_tool();
    assert_eq!(scene.log_status(&tool(), channels(&[]), vec![]), Status::ERR_BAD_PARAM);
    assert_eq!(scene.lines(), ["log to the job record failed: a tool names the job with PMIX_NSPACE\n"]);
    let named = vec![Info::new(keys::NSPACE, nspace.as_str())];
    assert_eq!(scene.log_status(&tool(), channels(&[]), named), Status::SUCCESS);
    let wanted = [(&rank, "text"), (&rank, "own\ntext"), (&tool(), "text")];
    let wanted: Vec<_> = wanted.map(|(by, text)| (by.clone(), text.to_owned())).into();
    assert_eq!(scene.recorded(&nspace), wanted);
}

#[test]
fn a_record_takes_texts_of_its_job_while_it_runs() {
    let mut scene = RootScene::up(2);
    let [first, second] = [0; 2].map(|_| scene.launch(JobRequest::default(), 1));
    let named = |nspace: &Nspace| vec![Info::new(keys::NSPACE, nspace.as_str())];
    let of_other = scene.log_status(&proc(&first, 0), channels(&[]), named(&second));
    assert_eq!(of_other, Status::ERR_NO_PERMISSIONS);
    scene.connect_tool();
    let unknown = scene.log_status(&tool(), channels(&[]), named(&Nspace::new("x@1").unwrap()));
    assert_eq!(unknown, Status::ERR_NOT_FOUND);
    assert_eq!(scene.lines(), ["log to the job record failed: no job x@1 is known\n"]);
    scene.end(&second, 1, ExitStatus::Code(0));
    assert_eq!(scene.log_status(&tool(), channels(&[]), named(&second)), Status::ERR_NOT_FOUND);
    assert_eq!(scene.lines(), [format!("log to the job record failed: job {second} has ended\n")]);
}

#[test]
fn a_full_record_refuses_texts_and_takes_failures() {
    let mut scene = RootScene::up(2);
    let continues = JobRequest { on_failure: FailurePolicy::Continue, ..JobRequest::default() };
    let nspace = scene.launch(continues, 2);
    let rank = proc(&nspace, 0);
    let answers: Vec<Status> = (0..1026).map(|_| scene.log_status(&rank, channels(&[]), vec![])).collect();
    assert!(answers.iter().take(1024).all(|status| status.is_success()));
    assert_eq!(answers[1024..], [Status::ERR_OUT_OF_RESOURCE; 2]);
    assert!(scene.lines()[0].contains("failed: it is full"), "{:?}", scene.lines());
    scene.post(0, failed(&nspace, 1));
    let journal = &scene.root.dvm.jobs[&nspace].journal;
    assert_eq!(journal.dropped(), 0);
    let failures =
        journal.entries().iter().filter(|entry| matches!(entry.what(), journal::What::Failed { .. }));
    assert_eq!(failures.count(), 1);
}

#[test]
fn each_syslog_is_written_by_the_daemon_of_its_node() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let rank = proc(&nspace, 7);
    let line = |text: &str| Text::from(format!("{rank}: {text}"));
    for (key, node) in [(keys::LOG_LOCAL_SYSLOG, 1), (keys::LOG_GLOBAL_SYSLOG, 0), (keys::LOG_SYSLOG, 0)] {
        let data = vec![Info::new(key, "a\u{1b}\nb")];
        let request = scene.log_on(1, &rank, data, vec![]);
        let (to, _, task) = scene.task();
        assert_eq!(to, Ranges::single(node), "{key}");
        let Task::Log { line: LogLine::Syslog { priority, line: told }, .. } = &*task else {
            panic!("{task:?}")
        };
        assert_eq!((*priority, told), (11, &line("a\\u001b\\nb")));
        scene.task_ends(Ok(()));
        assert_eq!((scene.status_of(request), scene.lines().len()), (Status::SUCCESS, 0));
    }
    let request = scene.log_on(1, &rank, channels(&[keys::LOG_SYSLOG]), vec![]);
    scene.task_ends(Err("no socket"));
    assert_eq!(scene.task_among().0, Ranges::single(1));
    scene.task_ends(Err("no socket either"));
    assert_eq!(scene.status_of(request), Status::ERROR);
    let why = "log to the syslog failed: the global one: no socket; the local one: no socket either";
    assert_eq!(scene.lines(), [format!("rank 7 of {nspace}: {why}")]);
}

#[test]
fn a_priority_is_a_number_of_syslog() {
    let mut scene = RootScene::up(1);
    let nspace = scene.launch(JobRequest::default(), 1);
    let rank = proc(&nspace, 0);
    for (stated, priority) in [(0, 8), (7, 15), (8, 8), (191, 191)] {
        let stated = vec![Info::new(keys::LOG_SYSLOG_PRI, stated)];
        scene.log_on(0, &rank, channels(&[keys::LOG_SYSLOG]), stated);
        let (_, _, task) = scene.task();
        assert!(
            matches!(&*task, Task::Log { line: LogLine::Syslog { priority: p, .. }, .. } if *p == priority)
        );
    }
    for wrong in [-1, 192, 1 << 16] {
        let wrong = vec![Info::new(keys::LOG_SYSLOG_PRI, wrong)];
        let status = scene.log_status(&rank, channels(&[keys::LOG_SYSLOG]), wrong);
        assert_eq!(status, Status::ERR_BAD_PARAM);
    }
}

#[test]
fn a_mail_is_sent_on_the_host_of_the_root() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let request = scene.log_on(1, &proc(&nspace, 7), mail_to("a@x"), vec![]);
    let (to, _, task) = scene.task();
    assert_eq!(to, Ranges::single(0));
    let Task::Mail { mail, .. } = &*task else { panic!("{task:?}") };
    assert!(mail.text.to_string_lossy().starts_with("To: a@x\nMIME"), "{mail:?}");
    let waiting = scene.root.explain();
    assert!(matches!(&waiting[..], [one] if one.operation == "log" && one.subject == "mail"), "{waiting:?}");
    scene.task_ends(Err("its command exited with code 75: try later"));
    assert_eq!(scene.status_of(request), Status::ERROR);
    let why = "log to mail failed: its command exited with code 75: try later";
    assert_eq!(scene.lines(), [format!("rank 7 of {nspace}: {why}")]);
    assert_eq!(scene.log_status(&proc(&nspace, 7), mail_to("a@x\nBcc: b@x"), vec![]), Status::ERR_BAD_PARAM);
    assert!(scene.tasks().is_empty());
}

#[test]
fn only_the_user_of_the_dvm_sends_mails_and_writes() {
    let mut scene = RootScene::up(1);
    let nspace = scene.launch(JobRequest::default(), 1);
    let file = vec![Info::new(names::LOG_FILE, "/tmp/log"), Info::new(keys::LOG_MSG, "text")];
    for data in [mail_to("a@x"), file, channels(&[])] {
        // What the requester itself states does not count.
        let uids = [1000, 4711].map(|uid: u32| Info::new(keys::USERID, uid)).to_vec();
        let request = scene.log_as(0, &proc(&nspace, 0), data, uids);
        assert_eq!(scene.status_of(request), Status::ERR_NO_PERMISSIONS);
        assert!(scene.lines()[0].contains("only the user of the DVM may"), "{:?}", scene.lines());
    }
}

#[test]
fn a_file_is_written_on_the_node_of_the_requester() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let data = |path: &str| vec![Info::new(names::LOG_FILE, path), Info::new(keys::LOG_MSG, "one\ntwo")];
    scene.log_on(1, &proc(&nspace, 7), data("/tmp/log"), vec![Info::new(keys::LOG_TAG_OUTPUT, true)]);
    let (to, _, task) = scene.task();
    assert_eq!(to, Ranges::single(1));
    let Task::Log { line: LogLine::File { path, line }, .. } = &*task else { panic!("{task:?}") };
    let number = nspace.as_str().rsplit_once('@').unwrap().1;
    assert_eq!((path, line), (&"/tmp/log".into(), &format!("[{number},7]<file>: one\\ntwo\n").into()));
    assert_eq!(scene.log_status(&proc(&nspace, 0), data("tmp/log"), vec![]), Status::ERR_BAD_PARAM);
}

#[test]
fn what_goes_to_the_data_store_is_published() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 1);
    let rank = proc(&nspace, 0);
    let item = |key: &str, text: &str| Info {
        key: Key::new(key).unwrap(),
        flags: Default::default(),
        value: text.into(),
    };
    let array = DataArray::of_infos([item("one", "1"), item("two", "2")]);
    let data = || vec![Info::new(keys::LOG_GLOBAL_DATASTORE, array.clone())];
    assert_eq!(scene.log_status(&rank, data(), vec![]), Status::SUCCESS);
    assert_eq!(scene.log_status(&rank, data(), vec![]), Status::ERR_DUPLICATE_KEY);
    let named = vec![Info::new(keys::LOG_KEY, "three")];
    let text = || channels(&[keys::LOG_GLOBAL_DATASTORE]);
    assert_eq!(scene.log_status(&rank, text(), named), Status::SUCCESS);
    assert_eq!(scene.log_status(&rank, text(), vec![]), Status::ERR_BAD_PARAM);
    scene.end(&nspace, 1, ExitStatus::Code(0));
    scene.connect_tool();
    scene.wishes.clear();
    let keys: Vec<Key> = ["one", "two", "three"].map(|key| Key::new(key).unwrap()).into();
    let lookup = Published { uid: 1000, keys, info: Vec::new() };
    let request = scene.ask(0, HostOp::Lookup(Asked { from: tool(), request: lookup }));
    let Some(HostReply::Lookup(Ok(found))) = scene.answer(request) else { panic!("{:?}", scene.wishes) };
    let found: Vec<_> = found.iter().map(|data| data.value.as_str().unwrap()).collect();
    assert_eq!(found, ["1", "2", "text"]);
}

#[test]
fn without_once_every_channel_is_tried() {
    let mut scene = RootScene::up(1);
    let nspace = scene.launch(JobRequest::default(), 1);
    let rank = proc(&nspace, 0);
    let all = [keys::LOG_LOCAL_SYSLOG, "some.channel", keys::LOG_STDERR, keys::LOG_JOB_RECORD];
    let request = scene.log_on(0, &rank, channels(&all), vec![]);
    assert!(scene.answer(request).is_none());
    assert!(scene.reports().iter().any(|report| matches!(report, Report::Logged { .. })));
    scene.task_ends(Ok(()));
    assert_eq!(scene.status_of(request), Status::ERR_PARTIAL_SUCCESS);
    assert_eq!(
        scene.lines(),
        [format!("rank 0 of {nspace}: log to some.channel failed: there is no such channel")]
    );
    assert_eq!(scene.recorded(&nspace).len(), 1);
    let none = scene.log_status(
        &rank,
        vec![Info::new("some.channel", "x"), Info::new(keys::LOG_EMAIL, true)],
        vec![],
    );
    assert_eq!((none, scene.lines().len()), (Status::ERR_NOT_SUPPORTED, 2));
    for nothing in [vec![Info::new(keys::LOG_ONCE, true)], vec![Info::new(keys::LOG_STDERR, false)]] {
        assert_eq!(scene.log_status(&rank, nothing, vec![]), Status::ERR_BAD_PARAM);
    }
}

#[test]
fn once_ends_with_the_first_channel_that_succeeds() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let rank = proc(&nspace, 7);
    let all = [keys::LOG_LOCAL_SYSLOG, keys::LOG_GLOBAL_SYSLOG, keys::LOG_JOB_RECORD, keys::LOG_STDERR];
    let request = scene.log_on(1, &rank, channels(&all), once());
    assert_eq!(scene.tasks().len(), 1);
    scene.task_ends(Err("no socket"));
    assert_eq!(scene.task_among().0, Ranges::single(0));
    scene.task_ends(Err("no socket"));
    assert_eq!(scene.status_of(request), Status::SUCCESS);
    assert_eq!(scene.lines().len(), 2);
    assert!(!scene.reports().iter().any(|report| matches!(report, Report::Logged { .. })));
    assert_eq!(scene.recorded(&nspace).len(), 1);
    let request = scene.log_on(1, &rank, channels(&all), once());
    scene.task_ends(Ok(()));
    assert_eq!((scene.status_of(request), scene.lines().len()), (Status::SUCCESS, 0));
    assert_eq!(scene.recorded(&nspace).len(), 1);
}

#[test]
fn a_daemon_that_reports_nothing_is_waited_for_in_vain() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 8);
    let all = [keys::LOG_LOCAL_SYSLOG, keys::LOG_JOB_RECORD];
    let request = scene.log_on(1, &proc(&nspace, 7), channels(&all), once());
    let (_, op, _) = scene.task();
    scene.wait(69);
    assert!(scene.answer(request).is_none());
    scene.wait(2);
    assert_eq!(scene.status_of(request), Status::SUCCESS);
    let why = "log to the local syslog failed: it was not done in 70 s";
    assert_eq!(scene.lines(), [format!("rank 7 of {nspace}: {why}")]);
    scene.gathered(op, Part::Results(Results::default()));
    let request = scene.log_on(1, &proc(&nspace, 7), channels(&all[..1]), vec![]);
    scene.wait(71);
    assert_eq!(scene.status_of(request), Status::ERR_TIMEOUT);
}

#[test]
fn the_daemon_of_a_channel_may_be_lost() {
    let mut scene = RootScene::up(3);
    let nspace =
        scene.launch(JobRequest { on_failure: FailurePolicy::Continue, ..JobRequest::default() }, 12);
    scene.log_on(1, &proc(&nspace, 7), channels(&[keys::LOG_LOCAL_SYSLOG]), vec![]);
    let (among, op, _) = scene.task();
    scene.wishes.clear();
    scene.tell(ToRoot::Gathered {
        op: Arc::new(op),
        among: among.clone(),
        missing: among,
        part: Part::Nothing,
    });
    let why = "log to the local syslog failed: the daemon was lost";
    assert!(scene.lines().contains(&format!("rank 7 of {nspace}: {why}")), "{:?}", scene.lines());
    assert!(scene.root.explain().is_empty());
}

#[test]
fn requests_that_wait_for_daemons_are_bounded() {
    let mut scene = RootScene::up(1);
    let nspace = scene.launch(JobRequest::default(), 1);
    let requests: Vec<u64> =
        (0..65).map(|_| scene.log_on(0, &proc(&nspace, 0), channels(&[keys::LOG_SYSLOG]), vec![])).collect();
    assert_eq!(scene.status_of(requests[64]), Status::ERR_OUT_OF_RESOURCE);
    assert!(scene.lines()[0].ends_with("64 other requests wait for daemons"), "{:?}", scene.lines());
    let all = [keys::LOG_SYSLOG, keys::LOG_JOB_RECORD];
    assert_eq!(scene.log_status(&proc(&nspace, 0), channels(&all), once()), Status::SUCCESS);
}

#[test]
fn a_source_is_a_process_that_the_requester_may_steer() {
    let mut scene = RootScene::up(1);
    let [first, second] = [0; 2].map(|_| scene.launch(JobRequest::default(), 2));
    let source = |of: ProcId| vec![Info::new(keys::LOG_SOURCE, of)];
    let rank = proc(&first, 0);
    assert_eq!(scene.log_status(&rank, channels(&[]), source(proc(&first, 1))), Status::SUCCESS);
    assert_eq!(scene.recorded(&first), [(proc(&first, 1), "text".to_owned())]);
    let status = scene.log_status(&rank, channels(&[]), source(proc(&second, 1)));
    assert_eq!(status, Status::ERR_NO_PERMISSIONS);
    assert_eq!(scene.lines().len(), 1);
}

#[test]
fn last_words_are_written_when_their_process_is_gone() {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest::default(), 1);
    let all = [keys::LOG_LOCAL_SYSLOG, keys::LOG_GLOBAL_SYSLOG];
    scene.log_on(0, &proc(&nspace, 0), channels(&all), once());
    let (_, op, _) = scene.task();
    scene.post(0, failed(&nspace, 0));
    scene.end(&nspace, 1, ExitStatus::Code(3));
    scene.wishes.clear();
    let mut results = Results::default();
    results.set(&Ranges::single(0), Status::ERROR);
    scene.gathered(op, Part::Results(results));
    assert_eq!(scene.lines().len(), 0);
    assert_eq!(scene.task_among().0, Ranges::single(0));
    scene.task_ends(Ok(()));
    assert_eq!(scene.lines().len(), 1, "{:?}", scene.wishes);
    assert!(scene.root.explain().is_empty());
}
