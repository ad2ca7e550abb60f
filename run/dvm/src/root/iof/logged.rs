//! Text that processes log, on its way to the readers of their output: whole lines, by request instead of by writing.
//!
//! It is not subject to credit, so a stalled reader blocks no process; what does not fit is refused.

use std::sync::Arc;

use phalanx_core::output::FILE_ATTRIBUTES as FILES;
use phalanx_spec::{IofChannel, Status};
use phalanx_wire::{ProcId, plain};

use crate::id::NodeId;
use crate::msg::TapName;
use crate::report::Report;
use crate::root::dvm::Dvm;
use crate::root::iof::piece::TapPiece;
use crate::root::iof::readers::Readers;
use crate::root::iof::tap::Tap;
use crate::root::turn::Cx;

/// Every reader of this channel of the process gets it. If no reader has the stream redirected, the user of the DVM gets
/// it, too.
pub(in crate::root) fn show_logged(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    readers: &mut Readers,
    from: &ProcId,
    channel: IofChannel,
    text: String,
) -> Status {
    let job = dvm.jobs.get(&from.nspace);
    let pid = job.and_then(|job| job.journal.pid(from.rank));
    let forwarded = job.is_none_or(|job| job.desc.forward.intersects(channel));
    let style = readers.outputs.get(&from.nspace).map(|outputs| &outputs.style);
    let has_files = style.is_some_and(|style| style.iter().any(|info| FILES.contains(&info.key.as_str())));
    let mut reading: Vec<(&(NodeId, TapName), &mut Tap)> = readers.taps.iter_mut().collect();
    reading.retain(|((_, name), tap)| tap.is_to_get(name, from, channel, forwarded));
    if reading.iter().any(|(_, tap)| tap.unawaited() + text.len() > MOST_UNAWAITED) {
        return Status::ERR_OUT_OF_RESOURCE;
    }
    let is_redirected = reading.iter().any(|(_, tap)| !tap.copy);
    if !is_redirected && !has_files && dvm.config.rules.unheard {
        return Status::ERR_NOT_AVAILABLE;
    }
    let data: Arc<[u8]> = text.into_bytes().into();
    let mut names = Vec::new();
    for (name, tap) in reading {
        let (proc, data) = (from.clone(), data.clone());
        tap.push(TapPiece { proc, pid, channel, data, lost: 0, number: None, instead: !tap.copy });
        names.push(name.clone());
    }
    if forwarded {
        readers.cache_output(from, channel, &data);
    }
    names.iter().for_each(|name| readers.pump_tap(cx, name));
    if !is_redirected {
        // What a rank logs is output of the job; what a tool logs is shown to a user that may be another one.
        let text = match job {
            Some(_) => data.to_vec(),
            None => plain::lines(&String::from_utf8_lossy(&data)).into_bytes(),
        };
        cx.report(Report::Logged { proc: from.clone(), channel, text });
    }
    Status::SUCCESS
}

/// The most bytes of logged and cached pieces that one reader may leave unread: what the caches of all jobs send it at once,
/// and 1 MiB.
const MOST_UNAWAITED: usize = 9 << 20;
