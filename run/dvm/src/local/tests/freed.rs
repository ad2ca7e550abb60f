//! Reports of processes that have ended while their job goes on.

use phalanx_core::host::ClientFinalized;

use super::*;

impl Told {
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
    let mut told = Told::running();
    told.exit(1, ExitStatus::Code(0));
    assert_eq!(told.freed(), []);
    told.wait(1);
    assert_eq!(told.freed(), [one("1", "")]);
    told.wait(5);
    told.hurry();
    assert_eq!(told.freed().len(), 1);
}

#[test]
fn a_job_that_ends_soon_everywhere_needs_no_report() {
    let mut told = Told::running();
    told.exit(0, ExitStatus::Code(0));
    told.exit(1, ExitStatus::Code(0));
    told.down(Down::Forget { nspace: nspace() });
    told.wait(5);
    assert_eq!(told.freed(), []);
}

#[test]
fn while_slots_are_awaited_ends_are_reported_at_once() {
    let mut told = Told::running();
    told.exit(1, ExitStatus::Code(0));
    told.hurry();
    assert_eq!(told.freed(), [one("1", "")]);
    told.upcall(1, HostOp::ClientConnected(proc(0)));
    told.upcall(2, HostOp::ClientFinalized(ClientFinalized { proc: proc(0), others: false }));
    told.wait_millis(20);
    assert_eq!(told.freed(), [one("1", ""), one("", "0")]);
    told.exit(0, ExitStatus::Code(0));
    told.wait_millis(20);
    assert_eq!(told.freed(), [one("1", ""), one("", "0"), one("0", "")]);
}

#[test]
fn the_place_of_a_process_that_is_started_again_is_not_free() {
    let policy = FailurePolicy::Restart { most: 3 };
    let mut desc = desc();
    Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.on_failure = policy);
    let mut told = Told::running_job(desc);
    told.exit(1, ExitStatus::Code(3));
    told.wait(1);
    assert_eq!(told.freed(), []);
    told.exit(0, ExitStatus::Code(0));
    told.wait(1);
    assert_eq!(told.freed(), [one("0", "")]);
}
