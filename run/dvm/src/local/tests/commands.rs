//! Commands that run beside processes: checkpoints, readers of stacks, and mails.

use super::*;
use crate::effect::StdinPlan;
use crate::msg::{Mail, Subject};

/// The processes started for commands: their names, and the command lines for sh.
fn commands(scene: &LocalScene) -> Vec<(ProcId, String)> {
    let starts = scene.wishes.iter().filter_map(|wish| match wish {
        FromLocal::Effect(Effect::Spawn(start)) if start.proc.nspace != nspace() => {
            Some((start.proc.clone(), start.argv[2].to_string_lossy()))
        }
        _ => None,
    });
    starts.collect()
}

#[test]
fn a_command_takes_the_checkpoint_of_each_rank() {
    let mut desc = desc();
    Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.checkpoint_command = Some("save".into()));
    let mut scene = LocalScene::running_job(desc);
    scene.wishes.clear();
    let targets = Members { nspace: nspace(), ranks: Ranges::first(3) };
    let id = TaskId { operation: 4, number: 1, daemons: Ranges::single(1) };
    let task = Task::Checkpoint { targets, name: "night".into(), limit: Duration::from_secs(5) };
    scene.down(Down::Task { id: id.clone(), task: Arc::new(task) });
    let [(first, save), (second, _)] = &commands(&scene)[..] else { panic!("{:?}", scene.wishes) };
    assert_eq!(save, "save");
    let end = |scene: &mut LocalScene, proc: &ProcId, status| {
        scene.tell(ToLocal::Spawned { proc: proc.clone(), pid: 900, program: "/bin/a".into() });
        scene.tell(ToLocal::Exited { proc: proc.clone(), status });
        let data = b"first\nno space\n"[..].into();
        scene.tell(ToLocal::Output { proc: proc.clone(), channel: IofChannel::STDERR, data });
        for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
            scene.tell(ToLocal::OutputClosed { proc: proc.clone(), channel });
        }
    };
    end(&mut scene, first, ExitStatus::Code(0));
    assert!(scene.part(&OpId::Task(id.clone())).is_none());
    end(&mut scene, second, ExitStatus::Code(1));
    let Some(Part::Results(results)) = scene.part(&OpId::Task(id)) else { panic!("{:?}", scene.wishes) };
    let by_status: Vec<_> = results.iter().map(|(status, ranks)| (status, ranks.to_string())).collect();
    assert_eq!(by_status, [(Status::ERROR, "1".into()), (Status::SUCCESS, "0".into())]);
    assert_eq!(results.why(Status::ERROR), Some("its command exited with code 1: no space"));
}

#[test]
fn a_command_reads_the_stacks_of_each_rank_that_runs() {
    let mut scene = LocalScene::running();
    let ask = |scene: &mut LocalScene, number: u32| {
        scene.wishes.clear();
        let id = TaskId { operation: 4, number, daemons: Ranges::single(1) };
        let task = Task::Survey(Subject::Stacks { nspace: nspace(), ranks: None });
        scene.down(Down::Task { id: id.clone(), task: Arc::new(task) });
        OpId::Task(id)
    };
    let asked = ask(&mut scene, 1);
    let [(first, reader), (second, _)] = &commands(&scene)[..] else { panic!("{:?}", scene.wishes) };
    assert!(reader.contains("eu-stack") && reader.contains("PHALANX_PID"), "{reader}");
    let end = |scene: &mut LocalScene, proc: &ProcId, channel, data: &[u8]| {
        scene.tell(ToLocal::Output { proc: proc.clone(), channel, data: data.into() });
        scene.tell(ToLocal::Exited { proc: proc.clone(), status: ExitStatus::Code(0) });
        for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
            scene.tell(ToLocal::OutputClosed { proc: proc.clone(), channel });
        }
    };
    end(
        &mut scene,
        first,
        IofChannel::STDOUT,
        b"=process a\nTID 7:\n#0  0x1 wait4 - /lib/libc.so\n#1  0x2 main - /a\n",
    );
    assert!(scene.part(&asked).is_none());
    end(&mut scene, second, IofChannel::STDERR, b"no such process\nnot permitted\n");
    let Some(Part::Found(found)) = scene.part(&asked) else { panic!("{:?}", scene.wishes) };
    let [stack] = &found.stacks.all[..] else { panic!("{found:?}") };
    assert_eq!((stack.frames.join(" "), stack.ranks.to_string()), ("main wait4".to_owned(), "0".to_owned()));
    let [unread] = &found.stacks.unread[..] else { panic!("{found:?}") };
    assert_eq!((unread.why.as_str(), unread.ranks.to_string()), ("not permitted", "1".to_owned()));

    scene.exit(1, ExitStatus::Code(0));
    let asked = ask(&mut scene, 2);
    assert_eq!(commands(&scene).len(), 1, "the other has ended");
    scene.exit(0, ExitStatus::Code(0));
    scene.down(Down::Forget { nspace: nspace() });
    assert!(scene.part(&asked).is_some());
}

#[test]
fn commands_end_in_time_and_with_their_job() {
    let mut desc = desc();
    Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.checkpoint_command = Some("save".into()));
    let mut scene = LocalScene::running_job(desc);
    let take = |scene: &mut LocalScene, number: u32| {
        scene.wishes.clear();
        let id = TaskId { operation: 4, number, daemons: Ranges::single(1) };
        let targets = Members { nspace: nspace(), ranks: Ranges::single(0) };
        let task = Task::Checkpoint { targets, name: "night".into(), limit: Duration::from_secs(5) };
        scene.down(Down::Task { id: id.clone(), task: Arc::new(task) });
        OpId::Task(id)
    };
    let late = take(&mut scene, 1);
    let (slow, _) = commands(&scene).remove(0);
    scene.wait(5);
    let kills = |wish: &FromLocal| matches!(wish, FromLocal::Effect(Effect::SignalTree { proc, .. }) if *proc == slow);
    assert!(scene.wishes.iter().any(kills));
    scene.tell(ToLocal::Exited {
        proc: slow.clone(),
        status: ExitStatus::Signal { number: 9, core_dumped: false },
    });
    scene.wait(1);
    let is_late =
        |part: &Part| matches!(part, Part::Results(results) if results.why(Status::ERR_TIMEOUT).is_some());
    assert!(scene.part(&late).is_some_and(is_late), "{:?}", scene.wishes);
    let open = take(&mut scene, 2);
    scene.exit(0, ExitStatus::Code(0));
    scene.exit(1, ExitStatus::Code(0));
    scene.down(Down::Forget { nspace: nspace() });
    assert!(scene.part(&open).is_some());
}

#[test]
fn a_mail_is_the_input_of_its_command() {
    let mut scene = LocalScene::running();
    let send = |scene: &mut LocalScene, number: u32| {
        scene.wishes.clear();
        let id = TaskId { operation: 4, number, daemons: Ranges::single(1) };
        let mail = Mail { text: "To: a@x\n\ntext\n".into(), server: Some("mx".into()), port: Some(25) };
        let task = Task::Mail { item: 0, mail, limit: Duration::from_secs(60) };
        scene.down(Down::Task { id: id.clone(), task: Arc::new(task) });
        OpId::Task(id)
    };
    let sent = send(&mut scene, 1);
    let (sendmail, line) = commands(&scene).remove(0);
    assert!(line.ends_with("exec sendmail -t -i"), "{line}");
    let effects: Vec<&Effect> = scene
        .wishes
        .iter()
        .filter_map(|wish| match wish {
            FromLocal::Effect(effect) => Some(effect),
            _ => None,
        })
        .collect();
    let Effect::Spawn(start) = effects[0] else { panic!("{effects:?}") };
    assert!(start.env.contains(&"PHALANX_MAIL_SERVER=mx".into()), "{:?}", start.env);
    assert!(start.env.contains(&"PHALANX_MAIL_PORT=25".into()) && start.stdin == StdinPlan::Pipe);
    let [.., Effect::Stdin { data, .. }, Effect::StdinEnd { proc }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((&data[..], proc), (&b"To: a@x\n\ntext\n"[..], &sendmail));
    scene.tell(ToLocal::Spawned { proc: sendmail.clone(), pid: 900, program: "/bin/sh".into() });
    scene.tell(ToLocal::StdinRefused { proc: sendmail.clone() });
    assert!(scene.posts().is_empty(), "{:?}", scene.posts());
    scene.tell(ToLocal::Exited { proc: sendmail, status: ExitStatus::Code(75) });
    scene.wait(1);
    let Some(Part::Results(results)) = scene.part(&sent) else { panic!("{:?}", scene.wishes) };
    assert_eq!(results.why(Status::ERROR), Some("its command exited with code 75"));

    let late = send(&mut scene, 2);
    let (hanging, _) = commands(&scene).remove(0);
    scene.wait(60);
    let kills = |wish: &FromLocal| matches!(wish, FromLocal::Effect(Effect::SignalTree { proc, .. }) if *proc == hanging);
    assert!(scene.wishes.iter().any(kills));
    scene.tell(ToLocal::Exited {
        proc: hanging.clone(),
        status: ExitStatus::Signal { number: 9, core_dumped: false },
    });
    scene.wait(1);
    let is_late =
        |part: &Part| matches!(part, Part::Results(results) if results.why(Status::ERR_TIMEOUT).is_some());
    assert!(scene.part(&late).is_some_and(is_late), "{:?}", scene.wishes);
}
