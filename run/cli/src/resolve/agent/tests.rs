use super::*;

fn here() -> Here {
    Here {
        env: Vec::new(),
        cwd: "/".into(),
        hostname: "n1".into(),
        px: Some("/opt/it's here/px".into()),
        is_in_step: || true,
        addresses: Vec::new,
    }
}

fn command(template: Option<&str>, user: Option<&str>) -> Result<Vec<String>, String> {
    let args = FleetArgs { launch_agent: template.map(str::to_owned), ..FleetArgs::default() };
    let host = Destination { name: "b".to_owned(), user: user.map(str::to_owned) };
    let found = agents(&[host], &args, None, &here()).map_err(|failure| failure.to_string())?;
    Ok(found.agents[0].argv.iter().map(Text::to_string_lossy).collect())
}

#[test]
fn templates_are_words_as_in_a_shell() {
    let argv = command(Some("kubectl exec -i '{host}' -c \"a b\" --"), None).expect("a template");
    assert_eq!(argv, ["kubectl", "exec", "-i", "b", "-c", "a b", "--", "/opt/it's here/px", "daemon"]);
    let argv = command(Some("./go --to=pod-{host} {host}"), Some("bob")).expect("a template");
    assert_eq!(argv, ["./go", "--to=pod-bob@b", "bob@b", "/opt/it's here/px", "daemon"]);
}

#[test]
fn hosts_without_a_place_come_last() {
    let argv = command(Some("stand-in"), None).expect("a template");
    assert_eq!(argv, ["stand-in", "b", "/opt/it's here/px", "daemon"]);
}

#[test]
fn paths_are_quoted_for_remote_shells() {
    for template in [None, Some("/usr/bin/ssh -p 2222"), Some("rsh")] {
        let argv = command(template, None).expect("a template");
        assert_eq!(argv[argv.len() - 2..], [r"'/opt/it'\''s here/px'", "daemon"], "{template:?}");
    }
}

#[test]
fn templates_that_mean_nothing_are_refused() {
    for (template, cause) in [
        ("", "it names no program"),
        ("  ", "it names no program"),
        ("'' {host}", "it names no program"),
        ("ssh 'b", "a quote is not closed"),
        ("ssh {hosts}", "'{hosts}' stands for nothing, only '{host}' does"),
        ("ssh x{}y{HOST}", "'{HOST}' stands for nothing, only '{host}' does"),
    ] {
        let error = command(Some(template), None).expect_err(template);
        assert_eq!(error, format!("invalid value '{template}' for '--launch-agent': {cause}"));
    }
    assert!(command(Some("run '{\"host\": 1}' {} {host}"), None).is_ok(), "braces are not always a name");
}

#[test]
fn srun_is_not_steered_by_the_allocation() {
    for name in ["SLURM_NTASKS_PER_NODE=2", "SLURM_MEM_PER_NODE=1", "SRUN_CPUS_PER_TASK=4", "SLURM_STEP_ID=0"]
    {
        assert!(steers_srun(name.as_bytes()), "{name}");
    }
    for name in ["SLURM_CONF=/etc/s.conf", "SLURMD_NODENAME=n1", "PATH=/bin"] {
        assert!(!steers_srun(name.as_bytes()), "{name}");
    }
}
