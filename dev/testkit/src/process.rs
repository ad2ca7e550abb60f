//! A simulated process: its script, its streams with their credit, and its reaction to signals.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use phalanx_dvm::{ExitStatus, LEAST_CHARGE, NodeId, charge};
use phalanx_spec::IofChannel;

use crate::script::{Op, RankAnswer, Script, Step};

/// One process and the record of its life.
#[derive(Debug)]
pub struct Fate {
    pub node: NodeId,
    pub pid: u32,
    pub env: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Each request with its answer, in order.
    pub answers: Vec<(Op, RankAnswer)>,
    /// Output that its daemon has read, by channel.
    pub written: BTreeMap<IofChannel, Vec<u8>>,
    /// What it read from standard input.
    pub read: Vec<u8>,
    pub stdin_ended: bool,
    pub ended: Option<ExitStatus>,
    pub(crate) steps: VecDeque<Step>,
    pub(crate) asking: Option<Op>,
    pub(crate) sleeping: bool,
    pub(crate) connected: bool,
    pub(crate) ignores_term: bool,
    pub(crate) stopped: bool,
    /// SIGTERM came while it was stopped.
    pub(crate) term_pends: bool,
    pub(crate) lingers: Duration,
}

/// The pipes between a process and its daemon; they may exist before the process does.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    pub(crate) credit: BTreeMap<IofChannel, usize>,
    /// Bytes of standard input not read yet.
    pub(crate) unread: usize,
}

/// The next action of a process.
pub(crate) enum Next {
    Nothing,
    Ask(Op),
    Write(IofChannel, Vec<u8>),
    TakeStdin(usize),
    Wake(Duration),
    End(ExitStatus),
}

impl Fate {
    pub(crate) fn new(node: NodeId, pid: u32, script: Script) -> Fate {
        Fate {
            node,
            pid,
            env: BTreeMap::new(),
            answers: Vec::new(),
            written: BTreeMap::new(),
            read: Vec::new(),
            stdin_ended: false,
            ended: None,
            steps: script.steps.into(),
            asking: None,
            sleeping: false,
            connected: false,
            ignores_term: script.ignores_term,
            stopped: false,
            term_pends: false,
            lingers: script.lingers,
        }
    }

    /// Whether the answer to its last request was success or a value.
    pub fn is_content(&self) -> bool {
        match self.answers.last() {
            None => true,
            Some((_, RankAnswer::Value(_) | RankAnswer::Host(_))) => true,
            Some((_, RankAnswer::Done(status))) => status.is_success(),
        }
    }

    /// Whether it has been stopped and not continued.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Its next action, if it can act now.
    pub(crate) fn next(&mut self, pipes: &mut Pipes) -> Next {
        if self.ended.is_some() || self.asking.is_some() || self.sleeping || self.stopped {
            return Next::Nothing;
        }
        match self.steps.front_mut() {
            None => Next::End(ExitStatus::Code(0)),
            Some(Step::Hang) => Next::Nothing,
            Some(Step::Exit(code)) => Next::End(ExitStatus::Code(*code)),
            Some(Step::Die(number)) => Next::End(ExitStatus::Signal { number: *number, core_dumped: false }),
            Some(Step::Sleep(span)) => {
                let span = *span;
                self.steps.pop_front();
                self.sleeping = true;
                Next::Wake(span)
            }
            Some(Step::Ask(op)) => {
                let op = op.clone();
                self.steps.pop_front();
                self.asking = Some(op.clone());
                Next::Ask(op)
            }
            Some(Step::Write(channel, bytes)) => {
                let channel = *channel;
                if bytes.is_empty() {
                    self.steps.pop_front();
                    return self.next(pipes);
                }
                let credit = pipes.credit.entry(channel).or_default();
                if *credit < LEAST_CHARGE {
                    return Next::Nothing;
                }
                let now = bytes.len().min(*credit);
                *credit -= charge(now);
                Next::Write(channel, bytes.drain(..now).collect())
            }
            Some(Step::ReadAll) if pipes.unread > 0 => Next::TakeStdin(std::mem::take(&mut pipes.unread)),
            Some(Step::ReadAll) if self.stdin_ended => {
                self.steps.pop_front();
                self.next(pipes)
            }
            Some(Step::ReadAll) => Next::Nothing,
        }
    }
}
