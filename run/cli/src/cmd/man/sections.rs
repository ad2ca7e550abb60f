//! The sections of man pages beside the table of options: examples, exit status, environment, files, related pages.

/// A term and its meaning.
pub(super) type Row = (&'static str, &'static str);

/// The sections of one page. Empty ones are left out.
#[derive(Clone, Copy)]
pub(super) struct Sections {
    /// Command lines and what they do.
    pub(super) examples: &'static [Row],
    pub(super) signals: &'static [Row],
    pub(super) exit_status: &'static [Row],
    pub(super) environment: &'static [Row],
    pub(super) files: &'static [Row],
    /// Names of pages.
    pub(super) see_also: &'static [&'static str],
}

/// The sections of the page called `name`.
pub(super) fn of(name: &str) -> Sections {
    PAGES.iter().find(|(page, _)| *page == name).map_or(TOOL, |(_, sections)| *sections)
}

/// A command that queries a server.
const TOOL: Sections = Sections {
    examples: &[],
    signals: &[],
    exit_status: TOOL_STATUS,
    environment: TOOL_ENVIRONMENT,
    files: SERVER_FILES,
    see_also: &["px", "px-run", "px-ps"],
};

/// A command that acts on ranks.
const STEER: Sections = Sections {
    exit_status: STEER_STATUS,
    see_also: &["px", "px-ctl", "px-kill", "px-wait", "px-ps"],
    ..TOOL
};

pub(super) const PAGES: &[(&str, Sections)] = &[
    (
        "px",
        Sections {
            examples: &[
                ("px run -n 4 ./a.out", "Run four ranks of a program."),
                ("px ps -r", "List the servers of this machine, their jobs and all ranks."),
                ("px why", "Show who is waiting for what."),
            ],
            signals: &[],
            exit_status: TOOL_STATUS,
            environment: &[LOG],
            files: &[],
            see_also: &[
                "px-run",
                "px-dvm",
                "px-ps",
                "px-attach",
                "px-ctl",
                "px-kill",
                "px-wait",
                "px-query",
                "px-events",
                "px-log",
                "px-publish",
                "px-lookup",
                "px-unpublish",
                "px-why",
                "px-mpirun",
            ],
        },
    ),
    (
        "px-run",
        Sections {
            examples: &[
                ("px run -n 16 ./solver in.dat", "Run an MPI program as 16 ranks."),
                ("px run -n 2 ./ocean : -n 4 ./atmosphere", "Run two programs as one job of six ranks."),
                ("px run --host a:4,b:4 ./a.out", "Run four ranks on each of two hosts."),
                (
                    "px run --launch-agent 'kubectl exec -i {host} --' --host pod-0,pod-1 ./a.out",
                    "Reach the hosts by another command than ssh.",
                ),
                (
                    "px run --map-by core --bind-to core --display map ./a.out",
                    "Run one rank per core, each bound to its core, and show where they go.",
                ),
                (
                    "px run --dry-run -n 8 --map-by ppr:2:numa ./a.out",
                    "Show where eight ranks would go, and why, and start nothing.",
                ),
                ("px run -n 4 --output tag ./a.out", "Show which rank wrote each line."),
                (
                    "px run --detach -n 4 ./a.out",
                    "Run a job that needs no terminal; px attach shows its output.",
                ),
                ("px run --system -n 4 ./a.out", "Run a job in the machine's DVM."),
                (
                    "px run --timeout 10m --report report.json ./a.out",
                    "End the job after ten minutes, and write how it ended as JSON.",
                ),
            ],
            signals: RUN_SIGNALS,
            exit_status: RUN_STATUS,
            environment: RUN_ENVIRONMENT,
            files: SERVER_FILES,
            see_also: &["px", "px-attach", "px-ps", "px-why", "px-dvm", "px-mpirun"],
        },
    ),
    (
        "px-mpirun",
        Sections {
            examples: &[
                ("mpirun -np 4 ./a.out", "Run four ranks of a program."),
                (
                    "mpirun -np 4 --mca btl self,vader --map-by ppr:2:package ./a.out",
                    "Hand a parameter on to Open MPI, and put two ranks on each package.",
                ),
                ("mpiexec -n 2 ./ocean : -n 4 ./atmosphere", "Run two programs as one job of six ranks."),
            ],
            signals: RUN_SIGNALS,
            exit_status: RUN_STATUS,
            environment: RUN_ENVIRONMENT,
            files: SERVER_FILES,
            see_also: &["px", "px-run"],
        },
    ),
    (
        "px-attach",
        Sections {
            examples: &[
                ("px attach px-node1-4711@4711", "Show what a job writes from now on."),
                ("px attach px-node1-4711@4711:0-3", "Show what its ranks 0 to 3 write."),
                (
                    "px attach --since-start px-node1-4711@4711",
                    "Show what is kept of its output as well; of a detached job that is everything.",
                ),
            ],
            exit_status: &[
                ("0", "The output was shown. Of a detached job: all ranks ended with 0."),
                ("N", "The exit code of the detached job, as in px-run(1)."),
                ("1", "The job, its server or its output could not be reached."),
                ("2", "The command line was wrong."),
            ],
            ..TOOL
        },
    ),
    (
        "px-ps",
        Sections {
            examples: &[
                ("px ps", "List servers and jobs."),
                ("px ps px-node1-4711@4711", "List the ranks of one job."),
                ("px ps -a -l", "List all jobs, and when each of them came how far."),
                ("px ps -a --json", "Describe all jobs as JSON, also those that have ended lately."),
            ],
            ..TOOL
        },
    ),
    (
        "px-ctl",
        Sections {
            examples: &[
                ("px ctl pause px-node1-4711@4711", "Stop all ranks of a job until they are resumed."),
                ("px ctl signal -s USR1 px-node1-4711@4711:0-3", "Send a signal to four of its ranks."),
            ],
            ..STEER
        },
    ),
    (
        "px-ctl-pause",
        Sections {
            examples: &[(
                "px ctl pause px-node1-4711@4711",
                "Stop all ranks of a job until they are resumed.",
            )],
            ..STEER
        },
    ),
    (
        "px-ctl-resume",
        Sections { examples: &[("px ctl resume px-node1-4711@4711:0-3", "Let four ranks go on.")], ..STEER },
    ),
    (
        "px-ctl-signal",
        Sections {
            examples: &[("px ctl signal -s USR1 px-node1-4711@4711", "Send SIGUSR1 to all ranks of a job.")],
            ..STEER
        },
    ),
    (
        "px-ctl-kill",
        Sections { examples: &[("px ctl kill px-node1-4711@4711:7", "Kill one rank at once.")], ..STEER },
    ),
    (
        "px-ctl-terminate",
        Sections {
            examples: &[(
                "px ctl terminate px-node1-4711@4711",
                "End a job: SIGTERM first, SIGKILL if that is not enough.",
            )],
            ..STEER
        },
    ),
    (
        "px-ctl-checkpoint",
        Sections {
            examples: &[
                ("px ctl checkpoint --name night px-node1-4711@4711", "Have all ranks take a checkpoint."),
                (
                    "px ctl checkpoint -s USR2 px-node1-4711@4711",
                    "The same with a signal, whatever they have registered.",
                ),
            ],
            ..STEER
        },
    ),
    (
        "px-ctl-restart",
        Sections {
            examples: &[(
                "px ctl restart --from night px-node1-4711@4711:2",
                "Start a rank again, which is told to go on from that checkpoint.",
            )],
            ..STEER
        },
    ),
    (
        "px-ctl-preempt",
        Sections {
            examples: &[(
                "px ctl preempt --name night px-node1-4711@4711",
                "Alert the ranks, have them take a checkpoint, and end them.",
            )],
            ..STEER
        },
    ),
    (
        "px-ctl-status",
        Sections {
            examples: &[("px ctl status night", "Show what has become of 'px ctl ... --id night'.")],
            ..STEER
        },
    ),
    (
        "px-ctl-cancel",
        Sections { examples: &[("px ctl cancel night", "Give the request of that name up.")], ..STEER },
    ),
    (
        "px-kill",
        Sections {
            examples: &[
                ("px kill px-node1-4711@4711", "End a job: SIGTERM first, SIGKILL if that is not enough."),
                ("px kill -s KILL px-node1-4711@4711:7", "Kill one rank at once."),
            ],
            see_also: &["px", "px-ctl", "px-wait", "px-ps"],
            ..STEER
        },
    ),
    (
        "px-wait",
        Sections {
            examples: &[(
                "px wait px-node1-4711@4711 --timeout 1h",
                "Wait up to an hour for the end of a job.",
            )],
            exit_status: &[
                ("0", "All of the jobs ended with 0."),
                ("N", "The exit code of the first of them that did not, as in px-run(1)."),
                ("124", "Not all of them have ended in the time of --timeout."),
                ("1", "A job is not known, or its server is gone and has not said how it ended."),
                ("2", "The command line was wrong."),
            ],
            see_also: &["px", "px-ctl", "px-kill", "px-ps"],
            ..TOOL
        },
    ),
    (
        "px-query",
        Sections {
            examples: &[
                ("px query --list", "Show which functions and attributes a server supports."),
                ("px query QUERY_PROC_TABLE:NSPACE=px-node1-4711@4711", "Show where the ranks of a job are."),
            ],
            ..TOOL
        },
    ),
    (
        "px-events",
        Sections {
            examples: &[
                ("px events", "Follow all events."),
                ("px events --code EVENT_JOB_END --count 1", "Wait for the next end of a job."),
                ("px events --since 10m", "Show what has happened to jobs in the last ten minutes."),
                ("px events --since 10m --follow", "The same, and then follow all events."),
            ],
            ..TOOL
        },
    ),
    (
        "px-log",
        Sections {
            examples: &[
                ("px log px-node1-4711@4711", "Show what was logged in the record of a job."),
                ("px log px-node1-4711@4711 checked by hand", "Write to it."),
            ],
            see_also: &["px", "px-run", "px-ps", "px-events"],
            ..TOOL
        },
    ),
    (
        "px-publish",
        Sections {
            examples: &[("px publish port=4242 --range session", "Publish a value for all jobs of the DVM.")],
            see_also: &["px", "px-lookup", "px-unpublish"],
            ..TOOL
        },
    ),
    (
        "px-lookup",
        Sections {
            examples: &[("px lookup port --wait 30", "Wait up to 30 seconds for a value, and print it.")],
            see_also: &["px", "px-publish", "px-unpublish"],
            ..TOOL
        },
    ),
    (
        "px-unpublish",
        Sections {
            examples: &[("px unpublish port", "Withdraw a value.")],
            see_also: &["px", "px-publish", "px-lookup"],
            ..TOOL
        },
    ),
    (
        "px-stacks",
        Sections {
            examples: &[
                ("px stacks px-host-7@7", "Show where the ranks of a job are."),
                ("px stacks px-host-7@7:0-3 --json", "The same of some ranks, for programs."),
            ],
            ..TOOL
        },
    ),
    (
        "px-top",
        Sections {
            examples: &[
                ("px top px-host-7@7", "Show what the ranks of a job use and wait for, every two seconds."),
                ("px top -n 2 -i 10 px-host-7@7", "Print two tables, ten seconds apart."),
            ],
            ..TOOL
        },
    ),
    ("px-why", Sections { examples: &[("px why", "Show who is waiting for what, and since when.")], ..TOOL }),
    (
        "px-dvm",
        Sections {
            examples: &[
                (
                    "px dvm start --system-server --daemonize",
                    "Start the machine's DVM, and return when jobs can be run in it.",
                ),
                ("px dvm stop --system", "End its jobs, and then the DVM."),
            ],
            see_also: &["px", "px-run", "px-dvm-start", "px-dvm-status", "px-dvm-stop"],
            ..TOOL
        },
    ),
    (
        "px-dvm-start",
        Sections {
            examples: &[
                ("px dvm start", "Run jobs of 'px run --pid PID' and of tools until Ctrl-C."),
                (
                    "px dvm start --system-server --daemonize",
                    "Start the machine's DVM, and return when jobs can be run in it.",
                ),
            ],
            signals: DVM_SIGNALS,
            exit_status: DVM_STATUS,
            environment: &[TMPDIR, SYSTEM_TMPDIR, RNDZ_URI, RNDZ_FILE, KEEPALIVE, LOG],
            see_also: &["px-dvm-status", "px-dvm-stop", "px-run"],
            ..TOOL
        },
    ),
    (
        "px-dvm-status",
        Sections {
            examples: &[("px dvm status --system", "Show the nodes of the machine's DVM, and its jobs.")],
            see_also: &["px-dvm-start", "px-dvm-stop", "px-ps"],
            ..TOOL
        },
    ),
    (
        "px-dvm-stop",
        Sections {
            examples: &[("px dvm stop --system", "End the jobs of the machine's DVM, and then the DVM.")],
            see_also: &["px-dvm-start", "px-run"],
            ..TOOL
        },
    ),
    (
        "px-hello",
        Sections {
            examples: &[("px run -n 4 px hello", "Let four ranks meet.")],
            environment: &[],
            files: &[],
            see_also: &["px-run"],
            ..TOOL
        },
    ),
    (
        "px-completions",
        Sections {
            examples: &[("px completions bash", "Print the completion script for bash.")],
            environment: &[],
            files: &[],
            see_also: &["px"],
            ..TOOL
        },
    ),
];

const TOOL_STATUS: &[Row] = &[
    ("0", "Done."),
    ("1", "It could not be done: no server was found, the server refused, or nothing was found."),
    ("2", "The command line was wrong."),
];

const STEER_STATUS: &[Row] = &[
    ("0", "Done, for all ranks that were named."),
    ("1", "Not done for some or all of them; the answer says for which, and why."),
    ("2", "The command line was wrong."),
];

const DVM_STATUS: &[Row] = &[
    ("0", "The DVM was stopped. With --daemonize: it has started."),
    ("129", "Its terminal was hung up."),
    ("1", "It could not be started, or has failed; the message says why."),
    ("2", "The command line was wrong."),
];

const RUN_STATUS: &[Row] = &[
    ("0", "Every rank ended with 0."),
    ("N", "The first rank that failed exited with N, or called abort with N."),
    (
        "128 + S",
        "The first rank that failed was killed by signal S, or the user ended the job with signal S.",
    ),
    (
        "137, 143, 128+S",
        "A process or a tool killed or terminated the job, or some of its ranks, by job control, or sent them signal S.",
    ),
    ("143", "The DVM in which the job ran was stopped."),
    ("124", "The job ran longer than --timeout."),
    ("126", "A program could not be started."),
    ("127", "A program was not found."),
    ("141", "Nobody reads the output of px any more."),
    ("2", "The command line was wrong."),
    ("1", "Something else went wrong; the message says what."),
];

const DVM_SIGNALS: &[Row] = &[
    ("SIGINT, SIGTERM, SIGHUP, SIGQUIT", "End all jobs, and then the DVM."),
    ("SIGTSTP, SIGCONT", "Suspend and resume the DVM, and with it the ranks of all jobs."),
];

const RUN_SIGNALS: &[Row] = &[
    (
        "SIGINT, SIGTERM, SIGHUP, SIGQUIT",
        "End the job: ranks get SIGTERM, and SIGKILL after --kill-after. A second one kills the job at once.",
    ),
    ("SIGTSTP, SIGCONT", "Suspend and resume all ranks together with px."),
    ("SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU", "Are handed on to every rank."),
];

const TOOL_ENVIRONMENT: &[Row] = &[
    TMPDIR,
    SYSTEM_TMPDIR,
    (
        "PMIX_SERVER_URI",
        "The server of the rank that calls the command; it is asked where no option names a server.",
    ),
    ("PHALANX_TOOL_SECRET", "The secret of a server on another node that --uri names."),
    LOG,
];

const RUN_ENVIRONMENT: &[Row] = &[
    TMPDIR,
    SYSTEM_TMPDIR,
    RNDZ_URI,
    RNDZ_FILE,
    KEEPALIVE,
    (
        "SLURM_JOB_NODELIST, PBS_NODEFILE, LSB_MCPU_HOSTS, LSB_DJOB_HOSTFILE, PE_HOSTFILE",
        "Hosts of the allocation in which px runs: ranks run on these, and on no others.",
    ),
    ("MPIEXEC_TIMEOUT", "The --timeout of mpirun, mpiexec and prterun, in seconds."),
    (
        "PHALANX_RANK, PHALANX_SIZE, PHALANX_LOCAL_RANK, PHALANX_LOCAL_SIZE, PHALANX_NODE_RANK, PHALANX_APP, PHALANX_JOB",
        "Set for each rank, for programs that know nothing of PMIx.",
    ),
    LOG,
    ("NO_COLOR", "If set, messages have no colours."),
];

const TMPDIR: Row = (
    "TMPDIR",
    "Where servers keep their files and where commands look for servers; /tmp by default, and if others can rename what lies there.",
);
const SYSTEM_TMPDIR: Row =
    ("PMIX_SYSTEM_TMPDIR", "Where the system's server has its file, if not in TMPDIR.");
const RNDZ_URI: Row =
    ("PMIX_LAUNCHER_RNDZ_URI", "The address of the tool that has started px, which connects back to it.");
const RNDZ_FILE: Row =
    ("PMIX_LAUNCHER_RNDZ_FILE", "The file into which px writes its address before it starts anything.");
const KEEPALIVE: Row = (
    "PMIX_KEEPALIVE_PIPE",
    "The read end of a pipe (or, as from OpenPMIx's library, the write end). px ends as by SIGTERM when its other end is closed.",
);
const LOG: Row = ("PHALANX_LOG", "What is logged on standard error: error, warn, info, debug or trace.");

const SERVER_FILES: &[Row] = &[
    (
        "pmix.HOST.tool, pmix.HOST.tool.PID, pmix.HOST.tool.NSPACE",
        "The rendezvous files of a server, in its session directory below TMPDIR. They say where the server is.",
    ),
    ("pmix.sys.HOST", "The rendezvous file of the system's server, in PMIX_SYSTEM_TMPDIR, TMPDIR or /tmp."),
];
