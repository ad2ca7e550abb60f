//! `px daemon`: one daemon of a DVM that was begun on another host. Whoever starts the DVM runs this command there; the rest is said over
//! standard input and output.

use phalanx_node::{
    Far, FarOptions, Inherited, Machine, Session, SessionOptions, SignalEvent, Signals, block_on, say_failed,
};

use crate::failure::Failure;

/// Until the DVM ends, or whoever has started this is gone.
pub(crate) fn run() -> Result<u8, Failure> {
    let code = begin().inspect_err(say_failed)?;
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
    let Far { mut running, mut lifeline } = Far::begin(options).await?;
    let handle = running.handle.clone();
    let mut orphaned = false;
    loop {
        tokio::select! {
            biased;
            () = lifeline.cut(), if !orphaned => {
                orphaned = true;
                let _ = handle.shutdown().await;
            }
            signal = signals.next() => {
                use SignalEvent::{Hangup, Interrupt, Quit, Terminate};
                if matches!(signal, Interrupt | Terminate | Hangup | Quit) {
                    let _ = handle.shutdown().await;
                }
            }
            report = running.reports.recv() => match report {
                Some(report) => tracing::debug!(?report, "told"),
                None => break,
            },
        }
    }
    running.finish().await?;
    Ok(0)
}
