//! The user: takes output at its own pace and remembers every report.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use phalanx_dvm::{JobEnd, Report};
use phalanx_spec::IofChannel;
use phalanx_wire::{Info, Nspace, ProcId};

/// One stream as the user saw it.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub bytes: Vec<u8>,
    pub ended: bool,
}

#[derive(Debug, Default)]
pub struct User {
    pub accepted: BTreeMap<u64, Nspace>,
    pub refused: BTreeMap<u64, String>,
    /// How the start of the DVM has ended, which happens once.
    pub starts: Vec<Result<(), String>>,
    /// Jobs that processes have spawned: their directives, and whether their output is shown elsewhere.
    pub spawned: BTreeMap<Nspace, (Vec<Info>, bool)>,
    pub streams: BTreeMap<(ProcId, IofChannel), Stream>,
    pub notes: Vec<String>,
    pub ends: BTreeMap<Nspace, JobEnd>,
    /// Jobs that were reported as about to end.
    pub ending: BTreeSet<Nspace>,
    /// The progress of each job's phases.
    pub progress: BTreeMap<(Nspace, &'static str), (u32, u32)>,
    /// How long it takes to read one report of output.
    pub pace: Duration,
    /// Bytes shown and not taken yet; their maximum so far.
    pub holding: usize,
    pub most_held: usize,
    pub(crate) untaken: VecDeque<usize>,
    /// Reports that contradict earlier ones.
    pub complaints: Vec<String>,
    /// Bytes that the launcher's standard input still has, and whether its end was reported.
    pub(crate) stdin: BTreeMap<Nspace, VecDeque<u8>>,
    pub(crate) stdin_over: BTreeMap<Nspace, bool>,
}

impl User {
    /// The bytes of the stream that the user has seen.
    pub fn output(&self, proc: &ProcId, channel: IofChannel) -> &[u8] {
        self.streams.get(&(proc.clone(), channel)).map_or(&[], |stream| &stream.bytes)
    }

    pub(crate) fn see(&mut self, report: Report) {
        match report {
            Report::Starting { .. } => {}
            Report::Ready => self.starts.push(Ok(())),
            Report::NotReady { error } => self.starts.push(Err(error)),
            Report::Accepted { request, nspace, .. } => {
                self.accepted.insert(request, nspace);
            }
            Report::Spawned { nspace, info, elsewhere, .. } => {
                self.spawned.insert(nspace, (info, elsewhere));
            }
            Report::Refused { request, error } => {
                self.refused.insert(request, error);
            }
            Report::Progress { nspace, phase, done, of } => {
                self.progress.insert((nspace, phase), (done, of));
            }
            Report::Output { proc, channel, data, .. } => {
                if self.ends.contains_key(&proc.nspace) {
                    self.complaints.push(format!("output of {proc} after its job's end"));
                }
                let stream = self.streams.entry((proc.clone(), channel)).or_default();
                if stream.ended {
                    self.complaints.push(format!("output of {proc} after the stream's end"));
                }
                stream.bytes.extend_from_slice(&data);
                self.holding += data.len();
                self.most_held = self.most_held.max(self.holding);
                self.untaken.push_back(data.len());
            }
            Report::OutputEnd { proc, channel } => {
                let stream = self.streams.entry((proc.clone(), channel)).or_default();
                if std::mem::replace(&mut stream.ended, true) {
                    self.complaints.push(format!("a stream of {proc} ended twice"));
                }
            }
            Report::Logged { text, .. } => {
                self.notes.push(String::from_utf8_lossy(&text).trim_end().to_owned());
            }
            Report::Note { text, .. } => self.notes.push(text),
            Report::Ending { nspace } => drop(self.ending.insert(nspace)),
            Report::Ended(end) => {
                if let Some(before) = self.ends.insert(end.nspace.clone(), *end) {
                    self.complaints.push(format!("job {} ended twice", before.nspace));
                }
            }
        }
    }
}
