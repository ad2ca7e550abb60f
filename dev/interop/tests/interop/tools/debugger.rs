//! Debuggers hold spawned jobs in init, are notified when all ranks are ready, and release them.

use phalanx_interop::{Job, launcher, libpmix, new_directory, pmix, pmix_tool, write_program};

#[test]
fn jobs_wait_in_init_for_a_debugger_on_either_library() {
    let ours = libpmix();
    let ours = ours.to_str().unwrap_or_default();
    let launcher = launcher(1);
    let pid = launcher.pid().to_string();
    for (tool_on, ranks_on) in [("", ""), ("", ours), (ours, ""), (ours, ours)] {
        let place = new_directory();
        let [program, released, too_early] =
            ["program", "released", "too-early"].map(|name| place.path().join(name));
        let script = format!(
            "#!/bin/sh\n'{}' && {{ [ -e {} ] || touch {}; }}\n",
            pmix("version").display(),
            released.display(),
            too_early.display()
        );
        write_program(&program, &script);
        let tool = Job::new(pmix_tool("debug")).args([&pid, "3"]).args([&program, &released]).arg(ranks_on);
        let outcome =
            tool.env("LD_LIBRARY_PATH", tool_on).env("TMPDIR", launcher.tmpdir()).run().expect_code(0);
        let lines: Vec<&str> = outcome.stdout.lines().filter(|line| !line.starts_with("rank ")).collect();
        let expected = [
            "support SUCCESS pmix.dbg.init,pmix.dbg.notify",
            "at exec NOT-SUPPORTED",
            "in init SUCCESS",
            "ready 1 at pmix-init, its job, 0 over",
            "release SUCCESS",
            "over",
        ];
        let plain = |line: &str| line.replace("PMIX_ERR_", "").replace("PMIX_", "").replace('_', "-");
        let lines: Vec<String> = lines.into_iter().map(plain).collect();
        assert_eq!(lines, expected, "tool on {tool_on:?}, ranks on {ranks_on:?}: {outcome}");
        assert!(!too_early.exists(), "tool on {tool_on:?}, ranks on {ranks_on:?}: somebody was not held");
    }
    launcher.end();
}
