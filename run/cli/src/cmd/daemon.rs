//! `px daemon`: one daemon of a DVM that was begun on another host. Whoever starts the DVM runs this command there; the rest is said over
//! standard input and output.

use phalanx_dvm::Report;
use phalanx_node::{
    Far, FarOptions, Inherited, Machine, Session, SessionOptions, SignalEvent, Signals, block_on, say_failed,
};

use crate::failure::{EXIT_FAILURE, Failure};

/// Until the DVM ends, or whoever has started this is gone.
pub(crate) fn run() -> Result<u8, Failure> {
    let code = begin().inspect_err(|error| say_failed(&format!("{error:#}")))?;
    Ok(code)
}

fn begin() -> anyhow::Result<u8> {
    let inherited = Inherited::take()?;
    let session = Session::begin(&SessionOptions::default())?;
    let machine = Machine::read()?;
    // How `srun` numbers the daemons that it has started.
    let place = std::env::var("SLURM_PROCID").ok().and_then(|place| place.parse().ok());
    block_on(serve(FarOptions { inherited, session, machine, place }))?
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
                // What concerns the user is told at the root.
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

/// Until a signal comes that ends whoever gets it.
async fn ends(signals: &mut Signals) -> SignalEvent {
    loop {
        let signal = signals.next().await;
        if signal.is_wish_to_end() {
            return signal;
        }
    }
}
