//! Reports of processes that have ended while their job goes on.

use phalanx_core::host::ClientFinalized;

use super::*;

impl LocalScene {
    fn freed(&self) -> Vec<(String, String)> {
        let freed = self.wishes.iter().filter_map(|wish| match wish {
            FromLocal::Post(Up::Freed { ended, leaving, .. }) => {
                Some((ended.to_string(), leaving.to_string()))
            }
            _ => None,
        });
        freed.collect()
    }

    /// The root waits for slots.
    fn hurry(&mut self) {
        let id = TaskId { operation: 9, number: 1, daemons: Ranges::single(1) };
        let task = Arc::new(Task::TellFreed { limit: Duration::from_secs(10) });
        self.down(Down::Task { id: id.clone(), task });
        assert!(matches!(self.part(&OpId::Task(id)), Some(Part::Nothing)));
    }
}

fn one(ended: &str, leaving: &str) -> (String, String) {
    (ended.to_owned(), leaving.to_owned())
}

#[test]
fn ended_processes_are_reported_once_after_a_while() {
    let mut scene = LocalScene::running();
    scene.exit(1, ExitStatus::Code(0));
    assert_eq!(scene.freed(), []);
    scene.wait(1);
    assert_eq!(scene.freed(), [one("1", "")]);
    scene.wait(5);
    scene.hurry();
    assert_eq!(scene.freed().len(), 1);
}

#[test]
fn a_job_that_ends_soon_everywhere_needs_no_report() {
    let mut scene = LocalScene::running();
    scene.exit(0, ExitStatus::Code(0));
    scene.exit(1, ExitStatus::Code(0));
    scene.down(Down::Forget { nspace: nspace() });
    scene.wait(5);
    assert_eq!(scene.freed(), []);
}

#[test]
fn while_slots_are_awaited_ends_are_reported_at_once() {
    let mut scene = LocalScene::running();
    scene.exit(1, ExitStatus::Code(0));
    scene.hurry();
    assert_eq!(scene.freed(), [one("1", "")]);
    scene.upcall(1, HostOp::ClientConnected(proc(0)));
    scene.upcall(2, HostOp::ClientFinalized(ClientFinalized { proc: proc(0), others: false }));
    scene.wait_millis(20);
    assert_eq!(scene.freed(), [one("1", ""), one("", "0")]);
    scene.exit(0, ExitStatus::Code(0));
    scene.wait_millis(20);
    assert_eq!(scene.freed(), [one("1", ""), one("", "0"), one("0", "")]);
}

#[test]
fn the_place_of_a_process_that_is_started_again_is_not_free() {
    let policy = FailurePolicy::Restart { most: 3 };
    let mut desc = desc();
    Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.on_failure = policy);
    let mut scene = LocalScene::running_job(desc);
    scene.exit(1, ExitStatus::Code(3));
    scene.wait(1);
    assert_eq!(scene.freed(), []);
    scene.exit(0, ExitStatus::Code(0));
    scene.wait(1);
    assert_eq!(scene.freed(), [one("0", "")]);
}
