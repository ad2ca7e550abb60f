//! `px daemon`: one daemon of a DVM with its root on another host. The root runs this command here; everything else goes over standard input and
//! output.

use phalanx_dvm::Report;
use phalanx_node::{
    Far, FarOptions, Inherited, Machine, Session, SessionOptions, SignalEvent, Signals, block_on, say_failed,
};

use phalanx_shell::rendezvous::system_directory;

use crate::failure::{EXIT_FAILURE, Failure};

/// Runs until the DVM ends, or the process that started it is gone.
pub(crate) fn run() -> Result<u8, Failure> {
    let code = begin().inspect_err(|error| say_failed(&format!("{error:#}")))?;
    Ok(code)
}

fn begin() -> anyhow::Result<u8> {
    let inherited = Inherited::take()?;
    let session = Session::begin(&SessionOptions { is_watched: true, ..SessionOptions::default() })?;
    let machine = Machine::read()?;
    // The number that `srun` gives to each daemon.
    let place = std::env::var("SLURM_PROCID").ok().and_then(|place| place.parse().ok());
    block_on(serve(FarOptions { inherited, session, machine, system_dir: system_directory(), place }))?
}

async fn serve(options: FarOptions) -> anyhow::Result<u8> {
    let mut signals = Signals::new()?;
    let begun = tokio::select! {
        begun = Far::begin(options) => begun,
        signal = ends(&mut signals) => Err(anyhow::anyhow!("{signal:?} came before it was told who it is to be")),
    };
    let Far { mut running, mut lifeline } = begun?;
    let mut code = 0;
    let handle = running.handle.clone();
    let mut orphaned = false;
    loop {
        tokio::select! {
            biased;
            () = lifeline.cut(), if !orphaned => {
                orphaned = true;
                let _ = handle.shutdown().await;
            }
            _ = ends(&mut signals) => {
                let _ = handle.shutdown().await;
            }
            report = running.reports.recv() => match report {
                Some(Report::NotReady { error }) => {
                    say_failed(&error);
                    code = EXIT_FAILURE;
                }
                // The root reports what concerns the user.
                Some(
                    report @ (Report::Starting { .. }
                    | Report::Ready
                    | Report::Refused { .. }
                    | Report::Accepted { .. }
                    | Report::Progress { .. }
                    | Report::Spawned { .. }
                    | Report::Output { .. }
                    | Report::OutputEnd { .. }
                    | Report::Logged { .. }
                    | Report::Note { .. }
                    | Report::Ending { .. }
                    | Report::Ended(_)),
                ) => tracing::debug!(?report, "told"),
                None => break,
            },
        }
    }
    running.finish().await?;
    Ok(code)
}

/// Waits for a signal that would end a process.
async fn ends(signals: &mut Signals) -> SignalEvent {
    loop {
        let signal = signals.next().await;
        if signal.is_wish_to_end() {
            return signal;
        }
    }
}
