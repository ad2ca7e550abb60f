//! Programs that would not notice that they were launched together: told before they run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use phalanx_dvm::AppSpec;
use phalanx_node::{WithoutPmix, without_pmix};
use phalanx_wire::Text;

use crate::failure::Failure;
use crate::resolve::{Here, Run};

/// Refuses programs of an MPI library without a PMIx client. Where there is but one rank that is a remark only.
pub(crate) fn check(run: &Run, here: &Here) -> Result<Option<String>, Failure> {
    let Some(found) = run.request.apps.iter().find_map(|app| examine(app, &run.request.env, here)) else {
        return Ok(None);
    };
    let WithoutPmix { program, library } = found;
    let what = format!(
        "{} is linked with MPICH ({}), which was built without PMIx",
        program.display(),
        library.display()
    );
    match run.request.apps.as_slice() {
        [AppSpec { procs: Some(1), .. }] => Ok(Some(format!("{what}: it runs as a world of its own"))),
        _ => Err(Failure::new(format!("{what}: each rank would be a world of its own")).hint(
            "start it with MPICH's own mpiexec, or link it with an MPI library that has a PMIx client",
        )),
    }
}

fn examine(app: &AppSpec, env: &[Text], here: &Here) -> Option<WithoutPmix> {
    let value = |name: &[u8]| {
        let variables = env.iter().chain(&app.env).rev();
        variables.map(Text::as_bytes).find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
    };
    let cwd = app.cwd.as_ref().map_or(here.cwd.as_path(), |cwd| Path::new(OsStr::from_bytes(cwd.as_bytes())));
    without_pmix(app.argv.first()?.as_bytes(), value(b"PATH"), value(b"LD_LIBRARY_PATH"), cwd)
}
