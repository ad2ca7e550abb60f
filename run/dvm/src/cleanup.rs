//! Files and directories that processes want removed when they have ended: the shell of their node does so.
//!
//! Such requests come as directives of job control, but are nobody's business but this node's.

use phalanx_core::{HostCallId, HostOp, HostReply};
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, ProcId, Text};

use crate::daemon::{Cx, Daemon};
use crate::effect::{Cleanup, Effect};

impl Daemon {
    /// Takes what is to be cleaned up behind a process, and passes the rest of the request on to the root.
    pub(crate) fn on_job_control(
        &mut self,
        cx: &mut Cx<'_>,
        id: HostCallId,
        from: ProcId,
        targets: Vec<ProcId>,
        directives: Vec<Info>,
    ) {
        let by_job = targets.iter().all(|target| *target != from);
        let Some(what) = cleanup(&directives, by_job) else {
            return self.ask_root(cx, id, HostOp::JobControl { from, targets, directives });
        };
        // It comes at a process's start, for itself. For others one would have to know what is theirs.
        if targets.iter().any(|target| !target.covers(&from)) {
            return cx.reply(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
        }
        cx.effect(Effect::CleanUp { proc: from.clone(), what: Box::new(what) });
        let rest: Vec<Info> = directives.into_iter().filter(|info| !is_cleanup(info)).collect();
        if rest.iter().all(|info| info.key == keys::JOB_CTRL_ID) {
            return cx.reply(id, HostReply::Infos(Status::SUCCESS, Vec::new()));
        }
        self.ask_root(cx, id, HostOp::JobControl { from, targets, directives: rest });
    }
}

/// `None`: nothing is to be cleaned up.
fn cleanup(directives: &[Info], by_job: bool) -> Option<Cleanup> {
    let what = Cleanup {
        files: list(directives, keys::REGISTER_CLEANUP),
        by_job,
        dirs: list(directives, keys::REGISTER_CLEANUP_DIR),
        recursive: directives.is_set(keys::CLEANUP_RECURSIVE),
        only_empty: directives.is_set(keys::CLEANUP_EMPTY),
        leave_top: directives.is_set(keys::CLEANUP_LEAVE_TOPDIR),
        ignore: list(directives, keys::CLEANUP_IGNORE),
    };
    (!what.files.is_empty() || !what.dirs.is_empty()).then_some(what)
}

/// All names in the comma-separated values of one key.
fn list(directives: &[Info], key: &str) -> Vec<Text> {
    let values = directives.iter().filter(|info| info.key == key).filter_map(|info| info.value.as_text());
    let names = values.flat_map(|text| text.as_bytes().split(|b| *b == b','));
    names.filter(|name| !name.is_empty()).map(Text::from_bytes).collect()
}

fn is_cleanup(info: &Info) -> bool {
    [
        keys::REGISTER_CLEANUP,
        keys::REGISTER_CLEANUP_DIR,
        keys::CLEANUP_RECURSIVE,
        keys::CLEANUP_EMPTY,
        keys::CLEANUP_LEAVE_TOPDIR,
        keys::CLEANUP_IGNORE,
    ]
    .iter()
    .any(|key| info.key == *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let directives = [
            Info::new(keys::REGISTER_CLEANUP, "/a,/b/c,"),
            Info::new(keys::CLEANUP_RECURSIVE, true),
            Info::new(keys::REGISTER_CLEANUP, "/d"),
        ];
        let what = cleanup(&directives, false).unwrap();
        assert_eq!(what.files, [Text::from("/a"), Text::from("/b/c"), Text::from("/d")]);
        assert!(what.recursive && what.dirs.is_empty() && !what.leave_top);
        assert_eq!(cleanup(&directives[1..2], false), None);
    }
}
