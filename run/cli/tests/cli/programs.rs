//! The files that ranks were started from, as debuggers are given them.

#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use crate::nested::{PX, dvm, px};

#[test]
fn proc_tables_name_the_files_that_were_started() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().canonicalize().expect("a path");
    std::os::unix::fs::symlink("/bin/sh", dir.join("own")).expect("a link");
    let own = dir.join("own").display().to_string();
    let mut dvm = dvm(&dir);
    let pid = dvm.id().to_string();
    // The rank may ask before the DVM knows that it has started.
    let table = r#"while table=$("$PX" query "QUERY_PROC_TABLE:NSPACE=$PMIX_NAMESPACE" "QUERY_LOCAL_PROC_TABLE:NSPACE=$PMIX_NAMESPACE" --json); do
        case $table in *'"pid":0,'*) ;; *) echo "$table"; exit;; esac; done"#;
    let variables = ["-x".to_owned(), "PATH=/nowhere:/bin".to_owned(), "-x".to_owned(), format!("PX={PX}")];
    let variables = variables.each_ref().map(String::as_str);
    for options in [&[][..], &["--pid", &pid]] {
        for (program, file) in [("own", &*own), ("./own", &own), ("sh", "/bin/sh"), ("/bin/sh", "/bin/sh")] {
            let words =
                [&["run", "-q", "-n", "1"], &variables[..], options, &[program, "-c", table]].concat();
            let shown = px(&dir, &words).output().expect("px runs");
            let named = format!("\"executable\":\"{file}\"");
            let count = String::from_utf8_lossy(&shown.stdout).matches(&named).count();
            assert_eq!(count, 2, "{options:?} {program}: {shown:?}");
        }
    }
    assert!(px(&dir, &["dvm", "stop", "--pid", &pid]).status().is_ok_and(|status| status.success()));
    assert!(dvm.wait().expect("the DVM ends").success());
}
