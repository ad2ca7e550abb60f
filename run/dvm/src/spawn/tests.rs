//! Every request survives the way through a spawn.

use std::collections::BTreeSet;
use std::time::Duration;

use phalanx_spec::{IofChannel, Rank, attribute};
use phalanx_topo::{CpuSet, Level};
use phalanx_wire::Nspace;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::hosts::{Host, HostEntry, Slots};
use crate::job::AppSpec;
use crate::map::{
    BindPolicy, BindTo, CpuItem, CpuList, MapBy, MapPolicy, Policy, RankBy, Rankfile, Sequence, SequenceEntry,
};
use crate::msg::{Change, EnvChange, FailurePolicy, StdinTarget};

fn any_text() -> impl Strategy<Value = Text> {
    vec(1u8..=255, 1..12).prop_map(|bytes| Text::from_bytes(&bytes))
}

fn any_level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec![
        Level::Pu,
        Level::Core,
        Level::L1,
        Level::L2,
        Level::L3,
        Level::Numa,
        Level::Package,
    ])
}

fn any_cpus() -> impl Strategy<Value = CpuSet> {
    vec(0u32..200, 1..6).prop_map(|cpus| cpus.into_iter().collect())
}

fn any_host() -> impl Strategy<Value = Host> {
    prop_oneof![
        4 => "[a-z][a-z0-9]{0,5}".prop_map(Host::Name),
        1 => Just(Host::Name("fe80::1".to_owned())),
        1 => (0u32..9).prop_map(Host::Index),
    ]
}

fn any_hosts() -> impl Strategy<Value = Vec<HostEntry>> {
    let slots = prop_oneof![
        Just(Slots::Unstated),
        (1u32..4).prop_map(Slots::Mentioned),
        (1u32..9).prop_map(Slots::Stated)
    ];
    let entry = (any_host(), slots, option::weighted(0.1, 1u32..9), option::weighted(0.1, "[a-z]{1,4}"));
    let entry = entry.prop_map(|(host, slots, max_slots, user)| HostEntry { host, slots, max_slots, user });
    vec(entry, 0..4).prop_map(|entries| {
        // Requests name each host once.
        let mut named = BTreeSet::new();
        entries.into_iter().filter(|entry| named.insert(entry.host.clone())).collect()
    })
}

fn any_entry() -> impl Strategy<Value = SequenceEntry> {
    let item = prop_oneof![
        any_cpus().prop_map(CpuItem::Cpus),
        any_cpus().prop_map(CpuItem::Packages),
        (any_cpus(), any_cpus()).prop_map(|(packages, cpus)| CpuItem::InPackages { packages, cpus }),
    ];
    let cpus = option::of(vec(item, 1..3).prop_map(|items| CpuList { items }));
    (any_host(), cpus, 1u32..99).prop_map(|(host, cpus, line)| SequenceEntry { host, cpus, line })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let by = prop_oneof![
        Just(MapBy::Slot),
        Just(MapBy::Node),
        any_level().prop_map(MapBy::Object),
        (1u32..9, prop_oneof![any_level(), Just(Level::Machine)])
            .prop_map(|(count, level)| MapBy::PerResource { count, level }),
        Just(MapBy::Sequence),
        Just(MapBy::Rankfile),
    ];
    let rank = prop_oneof![
        Just(RankBy::Slot),
        Just(RankBy::Node),
        Just(RankBy::Fill),
        Just(RankBy::Span),
        any_level().prop_map(RankBy::Object),
    ];
    let bind = prop_oneof![Just(BindTo::None), any_level().prop_map(BindTo::Object)];
    let bind = (option::of(bind), any::<bool>(), any::<bool>())
        .prop_map(|(to, overload, if_supported)| BindPolicy { to, overload, if_supported });
    let qualifiers = (
        option::of(1u32..9),
        any::<bool>(),
        option::of(any::<bool>()),
        option::of(any::<bool>()),
        any::<bool>(),
    );
    let file = ("/[a-z/]{1,9}", vec(any_entry(), 0..4));
    (option::of(by), qualifiers, option::of(rank), bind, option::of(any_cpus()), file).prop_map(
        |(by, (pe, span, oversubscribe, hwthreads, nolocal), rank, bind, cpu_set, (file, entries))| {
            let (mut sequence, mut rankfile) = (None, None);
            match by {
                Some(MapBy::Sequence) if !entries.is_empty() => {
                    sequence = Some(Sequence { file: file.clone(), entries });
                }
                Some(MapBy::Rankfile) => {
                    let ranks = (0..).step_by(3).zip(entries).collect();
                    rankfile = Some(Rankfile { file: file.clone(), ranks });
                }
                _ => {}
            }
            let is_file = sequence.is_some() || rankfile.is_some();
            let map = MapPolicy {
                by,
                pe: pe.filter(|_| rankfile.is_none()),
                span: span && matches!(by, None | Some(MapBy::Object(_))),
                oversubscribe,
                hwthreads,
                nolocal,
                file: is_file.then_some(file),
            };
            Policy { map, rank, bind, cpu_set, sequence, rankfile }
        },
    )
}

fn any_change() -> impl Strategy<Value = EnvChange> {
    let name = "[A-Z]{1,4}".prop_map(Text::from);
    (name, 0..6, any_text(), 1u8..=255).prop_map(|(name, how, value, separator)| EnvChange {
        name,
        how: match how {
            0 => Change::Set(value),
            1 => Change::Unset,
            2 => Change::Add(value),
            3 => Change::Prepend(value, separator),
            4 => Change::Append(value, separator),
            _ => Change::First(value, separator),
        },
    })
}

fn any_app() -> impl Strategy<Value = AppSpec> {
    let said = |policy: Policy| Some(policy).filter(|policy| *policy != Policy::default());
    let env = prop::collection::btree_map("[A-Z]{1,3}", "[a-z]{0,3}", 0..4);
    let env = env.prop_map(|env| env.iter().map(|(name, value)| format!("{name}={value}").into()).collect());
    (
        (vec(any_text(), 1..4), option::of(1u32..9), env, vec(any_change(), 0..4)),
        (option::of(any_text()), option::of(any_text()), any_hosts()),
        prop_oneof![2 => Just(None), 1 => any_policy().prop_map(said)],
    )
        .prop_map(|((argv, procs, env, changes), (cwd, prefix, hosts), policy)| AppSpec {
            argv,
            procs,
            env,
            changes,
            cwd,
            prefix,
            hosts,
            policy,
        })
}

fn any_job() -> impl Strategy<Value = JobRequest> {
    let stdin = prop_oneof![
        Just(StdinTarget::All),
        Just(StdinTarget::None),
        (0u32..9).prop_map(|rank| StdinTarget::Rank(Rank(rank)))
    ];
    let on_failure = prop::sample::select(vec![
        FailurePolicy::KillJob,
        FailurePolicy::KillOnSignal,
        FailurePolicy::Continue,
        FailurePolicy::Restart { most: 7 },
    ]);
    let limit = (1u64..1 << 40).prop_map(Duration::from_micros);
    let grace = limit.clone();
    let start_limit = (1u64..1 << 20).prop_map(Duration::from_secs);
    let streams = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), stdin);
    (
        vec(any_app(), 1..4),
        streams,
        (on_failure, option::of(limit), option::of(grace), option::of(start_limit)),
        any_policy(),
        prop::sample::subsequence(KEPT, 0..KEPT.len()),
    )
        .prop_map(|(apps, (out, err, diag, input, stdin), ends, policy, kept)| {
            let channels = [
                (out, IofChannel::STDOUT),
                (err, IofChannel::STDERR),
                (diag, IofChannel::STDDIAG),
                (input, IofChannel::STDIN),
            ];
            let forward = channels.into_iter().filter(|(wanted, _)| *wanted).map(|(_, channel)| channel.0);
            let (on_failure, timeout, kill_after, start_timeout) = ends;
            JobRequest {
                apps,
                env: Vec::new(),
                whole_env: !diag,
                // Input that is not forwarded has no reader.
                stdin: if input { stdin } else { StdinTarget::None },
                forward: Some(IofChannel(forward.fold(0, |all, one| all | one))),
                diag,
                on_failure,
                timeout,
                kill_after,
                checkpoint_command: diag.then(|| "save".into()),
                restart_command: diag.then(|| "load".into()),
                start_timeout,
                policy,
                info: kept.into_iter().map(|key| Info::new(key, true)).collect(),
                parent: Some(parent()),
            }
        })
}

fn parent() -> ProcId {
    ProcId::new(&Nspace::new("parent").unwrap(), Rank(0))
}

fn read_back(job: &[Info], apps: &[App]) -> Result<JobRequest, String> {
    JobRequest::of_spawn(&parent(), Vec::new(), job, apps)
}

proptest! {
    #[test]
    fn every_request_survives_being_spawned(request in any_job()) {
        let (job, apps) = request.to_spawn();
        prop_assert_eq!(read_back(&job, &apps), Ok(request));
    }

    /// A tool's server adds the attributes that mark it as a tool; the tool's own directives still count.
    #[test]
    fn tools_get_what_they_have_said(request in any_job()) {
        let (mut job, apps) = request.to_spawn();
        let facts = [Info::new(keys::REQUESTOR_IS_TOOL, true), Info::new(keys::PERSONALITY, "ompi")];
        job.extend_from_slice(&facts);
        let mut read = read_back(&job, &apps).unwrap();
        read.info.retain(|info| !facts.contains(info));
        prop_assert_eq!(read, request);
    }
}

#[test]
fn all_is_forwarded_unless_something_else_was_said() {
    let request = JobRequest { apps: vec![program()], ..JobRequest::default() };
    let (job, apps) = request.to_spawn();
    let read = read_back(&job, &apps).unwrap();
    let channels = IofChannel::STDIN.0 | IofChannel::STDOUT.0 | IofChannel::STDERR.0;
    assert_eq!((read.forward, read.stdin), (Some(IofChannel(channels)), StdinTarget::default()));
    let silent = read_back(&[], &apps).unwrap();
    assert_eq!((silent.forward, silent.stdin), (Some(IofChannel::NONE), StdinTarget::None));
}

#[test]
fn a_job_with_a_whole_environment_gets_none_of_the_dvms() {
    for (whole_env, expected) in [(false, vec![Text::from("A=dvm")]), (true, Vec::new())] {
        let (job, apps) = JobRequest { apps: vec![program()], whole_env, ..JobRequest::default() }.to_spawn();
        let read = JobRequest::of_spawn(&parent(), vec!["A=dvm".into()], &job, &apps).unwrap();
        assert_eq!(read.env, expected);
    }
}

#[test]
fn programs_get_the_jobs_environment_below_their_own() {
    let env = |entries: &[&str]| entries.iter().map(|entry| Text::from(*entry)).collect::<Vec<_>>();
    let app = AppSpec { env: env(&["B=own"]), ..program() };
    let request = JobRequest { apps: vec![app], env: env(&["A=1", "B=2"]), ..JobRequest::default() };
    assert_eq!(request.to_spawn().1[0].env, env(&["A=1", "B=own"]));
}

#[test]
fn programs_take_what_the_job_says_of_all() {
    let (_, mut apps) = JobRequest { apps: vec![program(), program()], ..JobRequest::default() }.to_spawn();
    apps[1].info.push(Info::new(keys::PREFIX, "/two"));
    let read = read_back(&[Info::new(keys::PREFIX, "/all"), Info::new(keys::WDIR, "/w")], &apps).unwrap();
    let prefixes: Vec<Option<Text>> = read.apps.iter().map(|app| app.prefix.clone()).collect();
    assert_eq!(prefixes, [Some("/all".into()), Some("/two".into())]);
    assert_eq!(read.apps[1].cwd, Some("/w".into()));
}

#[test]
fn values_that_mean_nothing_are_refused_by_name() {
    let (_, apps) = JobRequest { apps: vec![program()], ..JobRequest::default() }.to_spawn();
    let cases: [(&'static str, Value); 9] = [
        (keys::MAPBY, "nowhere".into()),
        (keys::MAPBY, "seq:file=/x".into()),
        (keys::RANKBY, 7_u32.into()),
        (keys::BINDTO, "moon".into()),
        (keys::CPU_LIST, "3-1".into()),
        (keys::HOST, "a:0".into()),
        (keys::STDIN_TGT, "everyone".into()),
        (keys::JOB_TIMEOUT, "soon".into()),
        (keys::PREFIX, true.into()),
    ];
    for (key, value) in cases {
        let refused = read_back(&[Info::new(key, value)], &apps).unwrap_err();
        assert!(refused.starts_with(&format!("{key}: ")), "{refused}");
    }
}

#[test]
fn every_attribute_is_listed_once() {
    let all = [JOB, APP, PLACEMENT, KEPT].concat();
    let ours = [
        KILL_ON_SIGNAL,
        SEQUENCE,
        RANKFILE,
        HOSTS,
        "phalanx.job_timeout",
        KILL_AFTER,
        WHOLE_ENV,
        CHECKPOINT_COMMAND,
        RESTART_COMMAND,
    ];
    for key in &all {
        assert!(attribute(key).is_some() || ours.contains(key), "{key}");
        assert_eq!(all.iter().filter(|other| *other == key).count(), 1, "{key}");
    }
}

fn program() -> AppSpec {
    AppSpec { argv: vec!["program".into()], ..AppSpec::default() }
}
