//! Programs whose ranks would not notice that they were launched together: told what they need, or refused, before they run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use phalanx_dvm::AppSpec;
use phalanx_node::{Foreign, INTELS_VARIABLE, examine, finds_libpmix};
use phalanx_wire::Text;

use crate::failure::Failure;
use crate::resolve::{Here, Run};

/// Refuses programs of an MPI library without a PMIx client; where there is but one rank that is a remark only. Intel's
/// library wants to be told which PMIx library to load; all programs are told, unless the user has done that.
pub(crate) fn prepare(run: &mut Run, here: &Here) -> Result<Option<String>, Failure> {
    let is_alone = matches!(run.request.apps.as_slice(), [AppSpec { procs: Some(1), .. }]);
    let mut remark = None;
    for app in &mut run.request.apps {
        let env = Environment { job: &run.request.env, app: &app.env };
        let cwd =
            app.cwd.as_ref().map_or(here.cwd.as_path(), |cwd| Path::new(OsStr::from_bytes(cwd.as_bytes())));
        let Some(program) = app.argv.first() else { continue };
        match examine(program.as_bytes(), env.value(b"PATH"), env.value(b"LD_LIBRARY_PATH"), cwd) {
            Some(Foreign::WithoutPmix { program, library }) => {
                let what = without_pmix(&program, &library);
                if !is_alone {
                    return Err(refusal(&what));
                }
                remark = Some(format!("{what}: it runs alone, as rank 0 of 1"));
            }
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

fn without_pmix(program: &Path, library: &Path) -> String {
    let (program, library) = (program.display(), library.display());
    format!("{program} is linked with MPICH ({library}), which was built without PMIx")
}

fn refusal(what: &str) -> Failure {
    Failure::new(format!("{what}: each rank would run alone, as rank 0 of 1"))
        .hint("start it with MPICH's own mpiexec, or link it with an MPI library that has a PMIx client")
}

/// The library that was installed with this `px`.
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
