//! `px run`: starts a node in this process, submits the job to it, and is the user's side of it until the job has ended.

mod below;
mod far;
mod foreign;
mod plan;
mod report;
mod runner;
mod status;
pub(crate) mod user;

use phalanx_dvm::Rules;
use phalanx_node::{Inherited, Machine, RootOptions, Running, Session, SessionOptions, Signals, block_on};

use std::rc::Rc;

use crate::args::split::RunLine;
use crate::background;
use crate::detached::Keep;
use crate::failure::Failure;
use crate::keepalive::Keepalive;
use crate::origin::Origin;
use crate::output;
use crate::render::hint;
use crate::resolve::{self, Here, Run};
use crate::trace;
use report::ExitReport;
use runner::{JobReports, Runner};
use user::User;

/// Runs a job, or shows what would be run. Returns px's exit code.
pub(crate) fn run(line: RunLine) -> Result<u8, Failure> {
    if background::is_here() {
        background::enter()?;
    }
    let inherited = Inherited::take()?;
    let here = Here::find()?;
    let mut run = resolve::run(line, &here)?;
    if run.detach && !run.dry_run && !background::is_here() {
        return match background::start(std::env::args_os().skip(1))? {
            Ok(line) => {
                let remark = background::remark().filter(|_| !run.voice.quiet);
                remark.iter().for_each(|text| hint::say(&hint::note(text, run.voice.json)));
                super::print(&line)
            }
            Err(code) => Ok(code),
        };
    }
    if !run.voice.quiet {
        run.notes.iter().for_each(|note| hint::say(&hint::note(note, run.voice.json)));
    }
    if run.dry_run {
        return plan::dry_run(&run, &here);
    }
    let remark = foreign::prepare(&mut run, &here)?;
    if let Some(remark) = remark.filter(|_| !run.voice.quiet) {
        hint::say(&hint::note(&remark, run.voice.json));
    }
    if run.voice.verbose >= 2 {
        trace::start(Some("debug"));
    }
    let report = run.report.as_deref().map(ExitReport::to).transpose()?;
    // Held until px ends: its reader sees no end before.
    let _pipe = output::open_pipe(&run.output)?;
    let keep = if run.detach { Some(Keep::open(&run)?) } else { None };
    let mut keep = keep.map(Rc::new);
    let code = match &run.far {
        Some(server) => block_on(far::job(&run, server, (keep.clone(), report))),
        None => {
            let session = Session::begin(&SessionOptions::default())?;
            let origin = Origin::of_environment()?;
            block_on(job(&run, inherited, session, &origin, (keep.clone(), report)))
        }
    };
    let code = code.map_err(Failure::from).and_then(|code| code);
    if let Some(keep) = keep.take().and_then(Rc::into_inner) {
        keep.finish(&code, run.voice.json);
    }
    code
}

/// One node, one job, and the end of both.
async fn job(
    run: &Run,
    inherited: Inherited,
    session: Session,
    origin: &Origin,
    (keep, report): (Option<Rc<Keep>>, Option<ExitReport>),
) -> Result<u8, Failure> {
    let mut signals = Signals::new().map_err(|e| Failure::new("cannot watch for signals").because(e))?;
    let note = session.note().map(str::to_owned);
    let mut running = Running::root(RootOptions {
        inherited,
        session,
        machine: Machine::read()?,
        slots: run.hosts.slots,
        max_slots: run.hosts.max_slots,
        takes_ranks: run.hosts.takes_ranks,
        fleet: run.hosts.fleet.clone(),
        networks: run.hosts.networks.clone(),
        reach: run.serve.reach,
        rendezvous_files: run.serve.files.clone(),
        system_dir: None,
        env: run.request.env.clone(),
        lasts: false,
        rules: Rules { mail: run.serve.mail.as_deref().map(Into::into), ..Rules::default() },
        limits: run.hosts.limits(),
    })?;
    let handle = running.handle.clone();
    let gone = |gone: phalanx_node::Gone| Failure::new("cannot start the job").because(gone);
    if keep.is_some() {
        // A reader of the job's name looks for the job at once.
        handle.announce().await.map_err(|error| super::unfindable("cannot start the job", &error))?;
    }
    handle.submit(run.request.clone(), run.stdin.clone()).await.map_err(gone)?;

    let mut user =
        User::new(run, Runner::Node(handle.clone()), keep, report, Keepalive::of_environment(Some(origin)));
    note.iter().for_each(|note| user.note(note));
    let end = user.follow(&mut JobReports::Node(&mut running.reports), &mut signals).await;
    let code = user.conclude(end, &mut signals).await;

    // Nothing of the job may be left when px has ended.
    if handle.shutdown().await.is_ok() {
        while running.reports.recv().await.is_some() {}
    }
    running.finish().await?;
    code
}
