//! Programs with ranks that would not notice that they were launched together: given what they need, or refused, before they run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use phalanx_dvm::{AppSpec, JobEnd, JobVerdict, WITHOUT_PMIX_HINT, without_pmix};
use phalanx_node::{INTELS_VARIABLE, Linked, examine, finds_libpmix};
use phalanx_wire::Text;

use crate::failure::Failure;
use crate::resolve::{Here, Run};

/// Refuses programs of an MPI library without a PMIx client; for a single rank that is only a note. Intel MPI needs the name of the PMIx library to
/// load: all programs get its variable, unless the user has set it.
pub(crate) fn prepare(run: &mut Run, here: &Here) -> Result<Option<String>, Failure> {
    let is_alone = matches!(run.request.apps.as_slice(), [AppSpec { procs: Some(1), .. }]);
    let mut remark = None;
    for app in &mut run.request.apps {
        let env = Environment { job: &run.request.env, app: &app.env };
        let cwd =
            app.cwd.as_ref().map_or(here.cwd.as_path(), |cwd| Path::new(OsStr::from_bytes(cwd.as_bytes())));
        let Some(program) = app.argv.first() else { continue };
        match examine(program.as_bytes(), env.value(b"PATH"), env.value(b"LD_LIBRARY_PATH"), cwd) {
            Some(Linked { program, library }) if !library.has_pmix => {
                let linked = format!("{} is linked with", program.display());
                if !is_alone {
                    let what = without_pmix(&linked, &library.file);
                    return Err(Failure::new(what).hint(WITHOUT_PMIX_HINT));
                }
                let library = library.file;
                remark = Some(format!(
                    "{linked} MPICH ({library}), which was built without PMIx: it runs alone, as rank 0 of 1; MPICH 5 refuses to start"
                ));
            }
            Some(Linked { library, .. }) => run.mpi = Some(library.file),
            None => {}
        }
        if env.value(INTELS_VARIABLE.as_bytes()).is_none() {
            let library = if finds_libpmix(env.value(b"LD_LIBRARY_PATH")) { None } else { beside_px() };
            let library = library.unwrap_or_else(|| LIBPMIX.into());
            app.env.push(Text::from(format!("{INTELS_VARIABLE}={}", library.display())));
        }
    }
    Ok(remark)
}

/// A note on a job that ended well and has loaded MPI, but has no rank that connected: its results may be those of many small jobs.
pub(super) fn remark(run: &Run, end: &JobEnd) -> Option<String> {
    let ranks = end.procs.len();
    if end.connected || end.verdict != JobVerdict::Success || ranks < 2 {
        return None;
    }
    let library = end.mpi.as_ref().or(run.mpi.as_ref())?;
    let name = library.rsplit('/').next().unwrap_or_default();
    let advice = match name.starts_with("libmpi.so.12") || name.starts_with("libmpich.so.") {
        true => advice_on_mpich(run),
        false => "check that the library was built with PMIx, and that the ranks have the PMIX_ variables that px sets (a wrapper, a container or ssh may drop them)".to_owned(),
    };
    Some(format!(
        "none of the {ranks} ranks has called PMIx_Init, although MPI was loaded ({library}): either MPI_Init was never called, \
         or each rank ran alone, as rank 0 of 1\nif they were to be one job, {advice}"
    ))
}

/// Intel MPI depends on the variable, MPICH on how it was built.
fn advice_on_mpich(run: &Run) -> String {
    let mut values = run.request.apps.iter().filter_map(|app| {
        let env = Environment { job: &run.request.env, app: &app.env };
        env.value(INTELS_VARIABLE.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned())
    });
    let value = values.next().unwrap_or_default();
    format!(
        "Intel MPI must find a libpmix.so.2 by {INTELS_VARIABLE} (here '{value}'), and MPICH must have been built with PMIx"
    )
}

/// The library installed with this `px`.
fn beside_px() -> Option<PathBuf> {
    let px = std::env::current_exe().ok()?.canonicalize().ok()?;
    Some(px.parent()?.parent()?.join("lib").join(LIBPMIX)).filter(|library| library.is_file())
}

const LIBPMIX: &str = "libpmix.so.2";

/// What a program finds in its environment: its own variables, then those of the job.
struct Environment<'a> {
    job: &'a [Text],
    app: &'a [Text],
}

impl Environment<'_> {
    fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let variables = self.job.iter().chain(self.app).rev();
        variables.map(Text::as_bytes).find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
    }
}
