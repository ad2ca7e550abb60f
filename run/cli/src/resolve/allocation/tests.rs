use super::*;

fn here(env: &[(&str, &str)]) -> Here {
    Here {
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: "/".into(),
        hostname: "n1".into(),
        px: None,
        is_in_step: || true,
        addresses: Vec::new,
    }
}

/// `n1:2 n2:4`
fn found(env: &[(&str, &str)]) -> Result<String, String> {
    let allocation = find(&here(env)).map_err(|failure| failure.to_string())?;
    let show = |entry: &HostEntry| match entry.slots {
        Slots::Stated(slots) => format!("{}:{slots}", entry.host),
        _ => entry.host.to_string(),
    };
    let hosts = allocation.map(|allocation| allocation.hosts).unwrap_or_default();
    Ok(hosts.iter().map(show).collect::<Vec<_>>().join(" "))
}

#[test]
fn every_batch_system_names_hosts_and_slots() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let nodes = file("nodes", "n1.a.org\nn1.a.org\nn2.a.org\nn1.a.org\n");
    let queues = file("queues", "n1.a.org 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 <NULL>\nn2 1 other.q 0-1\n");
    let cases: [(&[(&str, &str)], &str); 9] = [
        (&[("HOME", "/root")], ""),
        (&[("SLURM_JOB_NODELIST", "")], ""),
        (
            &[("SLURM_JOB_NODELIST", "n[1-3],gpu7"), ("SLURM_TASKS_PER_NODE", "2(x3),1")],
            "n1:2 n2:2 n3:2 gpu7:1",
        ),
        (
            &[
                ("SLURM_JOB_NODELIST", "n[1-2]"),
                ("SLURM_TASKS_PER_NODE", "1"),
                ("SLURM_JOB_CPUS_PER_NODE", "8(x2)"),
            ],
            "n1:8 n2:8",
        ),
        (&[("SLURM_JOB_NODELIST", "n[1-2]")], "n1 n2"),
        (&[("PBS_NODEFILE", &nodes)], "n1:3 n2.a.org:1"),
        (&[("LSB_MCPU_HOSTS", "n1 4 n2 2")], "n1:4 n2:2"),
        (&[("LSB_DJOB_HOSTFILE", &nodes)], "n1:3 n2.a.org:1"),
        (&[("PE_HOSTFILE", &queues)], "n1:4 n2:3"),
    ];
    for (env, hosts) in cases {
        assert_eq!(found(env), Ok(hosts.to_owned()), "{env:?}");
    }
}

#[test]
fn allocations_that_cannot_be_read_are_errors() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("empty"), "\n# nothing\n").expect("a file");
    std::fs::write(path("odd"), "n1 two all.q\n").expect("a file");
    let cases = [
        ("SLURM_JOB_NODELIST", "n[".to_owned(), "expected a number"),
        ("PBS_NODEFILE", path("nowhere"), "nowhere': No such file"),
        ("PBS_NODEFILE", path("empty"), "empty' names no host"),
        ("PBS_NODEFILE", path(""), "Is a directory"),
        ("LSB_MCPU_HOSTS", "n1 4 n2".to_owned(), "expected a number of slots"),
        ("PE_HOSTFILE", path("odd"), "odd:1:4: expected a number of slots, found \"two\""),
    ];
    for (variable, value, cause) in cases {
        let error = found(&[(variable, &value)]).expect_err(variable);
        let begin = format!("cannot read the allocation that {variable} names: ");
        assert!(error.starts_with(&begin) && error.contains(cause), "{error}");
    }
}
