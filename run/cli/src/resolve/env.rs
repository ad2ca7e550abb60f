//! `-x` and `--env-file`: which variables an app context adds to its ranks' environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use phalanx_wire::Text;

use crate::failure::Failure;
use crate::resolve::file;

/// px's own environment, as the ranks get it.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// The variables that `files` and then `words` set, as `NAME=VALUE`; adds notes on those that set nothing.
pub(crate) fn additions(
    files: &[PathBuf],
    words: &[OsString],
    own: &Environment,
    notes: &mut Vec<String>,
) -> Result<Vec<Text>, Failure> {
    let mut set = Vec::new();
    for file in files {
        let text = file::read(file).map_err(|e| {
            Failure::new(format!("cannot read the environment file '{}'", file.display())).because(e)
        })?;
        read_file(file, &text, &mut set)?;
    }
    for word in words {
        match word.as_bytes().iter().position(|b| *b == b'=') {
            Some(at) => {
                let (name, value) = word.as_bytes().split_at(at);
                if name.is_empty() || name.iter().any(|b| b"*?".contains(b)) {
                    return Err(Failure::usage(format!("'-x {}' names no variable to set", word.display()))
                        .hint("wildcards hand on what is set already: -x 'NAME*'"));
                }
                set.push((name.to_vec(), value.get(1..).unwrap_or_default().to_vec()));
            }
            None if word.is_empty() => return Err(Failure::usage("'-x' needs the name of a variable")),
            None => hand_on("-x", word, own, &mut set, notes),
        }
    }
    // The last value wins, at the place of the first: an environment has each name once.
    let mut kept: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(set.len());
    for (name, value) in set {
        match kept.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => kept.push((name, value)),
        }
    }
    Ok(kept.iter().map(|(name, value)| assignment(name, value)).collect())
}

/// What `--export` leaves of our own environment.
pub(crate) struct Exported {
    pub(crate) env: Vec<Text>,
    /// Nothing was left out.
    pub(crate) is_all: bool,
}

/// The initial environment of every rank, with the words of `srun`. Without them it is [`inherited`].
pub(crate) fn exported(
    words: Option<&OsStr>,
    own: &Environment,
    notes: &mut Vec<String>,
) -> Result<Exported, Failure> {
    let words: Vec<&[u8]> =
        words.map_or(vec![b"ALL"], |words| words.as_bytes().split(|b| *b == b',').collect());
    let none = words.iter().any(|word| matches!(*word, b"NONE" | b"NIL"));
    if none && words.len() > 1 {
        return Err(Failure::usage("'--export': 'NONE' stands alone"));
    }
    let is_all = words.contains(&b"ALL".as_slice());
    let mut set = Vec::new();
    for word in words.into_iter().filter(|word| !none && *word != b"ALL") {
        match word.iter().position(|b| *b == b'=') {
            Some(0) => return Err(Failure::usage("'--export' needs the name of a variable before '='")),
            None if word.is_empty() => return Err(Failure::usage("'--export' needs the names of variables")),
            Some(at) => set.push((word[..at].to_vec(), word[at + 1..].to_vec())),
            None => hand_on("--export", OsStr::from_bytes(word), own, &mut set, notes),
        }
    }
    let is_kept = |entry: &Text| is_all || entry.as_bytes().starts_with(b"SLURM_");
    let mut env: Vec<Text> = inherited(own).into_iter().filter(is_kept).collect();
    for (name, value) in set {
        let entry = assignment(&name, &value);
        let is_it = |known: &Text| known.as_bytes().split(|b| *b == b'=').next() == Some(name.as_slice());
        match env.iter_mut().find(|known| is_it(known)) {
            Some(known) => *known = entry,
            None => env.push(entry),
        }
    }
    Ok(Exported { env, is_all })
}

/// The initial environment of every rank: our own, without the variables that identify a process in a job. If px itself is a rank of some job, its
/// ranks must not mistake themselves for that rank.
pub(crate) fn inherited(own: &Environment) -> Vec<Text> {
    own.iter()
        .filter(|(name, _)| !is_identity(name.as_bytes()))
        .map(|(name, value)| assignment(name.as_bytes(), value.as_bytes()))
        .collect()
}

fn is_identity(name: &[u8]) -> bool {
    phalanx_dvm::is_identity(name)
        || OF_LAUNCHERS.iter().any(|known| match known.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix.as_bytes()),
            None => name == known.as_bytes(),
        })
}

/// Variables that other launchers and servers set for their processes, beside those that no process inherits.
const OF_LAUNCHERS: &[&str] = &[
    "PMIX_SERVER_*",
    "PMIX_HOSTNAME",
    "PMIX_VERSION",
    "PMIX_SECURITY_MODE",
    "PMIX_PTL_MODULE",
    "PMIX_BFROP_BUFFER_TYPE",
    "PMIX_GDS_MODULE",
    "PMIX_DSTORE_*",
    "PMIX_LAUNCHER_*",
    "PHALANX_TOOL_SECRET",
    "PMI_*",
    "PMI2_*",
    "PX_*",
    "JSM_JSRUN_PORT",
    "HYDI_*",
    "MPI_LOCALNRANKS",
    "MPI_LOCALRANKID",
    "OMPI_APP_CTX_NUM_PROCS",
    "OMPI_ARGV",
    "OMPI_COMMAND",
    "OMPI_COMM_WORLD_*",
    "OMPI_FILE_LOCATION",
    "OMPI_FIRST_RANKS",
    "OMPI_MCA_ess",
    "OMPI_MCA_ess_*",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_mpi_oversubscribe",
    "OMPI_MCA_orte_*",
    "OMPI_MCA_pmix",
    "OMPI_NUM_APP_CTX",
    "OMPI_UNIVERSE_SIZE",
    "PRTE_LAUNCHED",
];

/// `NAME=VALUE`
pub(crate) fn assignment(name: &[u8], value: &[u8]) -> Text {
    Text::from_bytes(&[name, b"=", value].concat())
}

/// Adds the variables of our own environment that `word`, a name or a pattern, matches.
fn hand_on(
    option: &str,
    word: &OsStr,
    own: &Environment,
    set: &mut Vec<(Vec<u8>, Vec<u8>)>,
    notes: &mut Vec<String>,
) {
    let before = set.len();
    for (name, value) in own {
        if matches(word.as_bytes(), name.as_bytes()) {
            set.push((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        }
    }
    if set.len() == before {
        notes.push(match word.as_bytes().iter().any(|b| b"*?".contains(b)) {
            true => format!("{option} '{}': no variable matches", word.display()),
            false => format!("{option} {}: the variable is not set", word.display()),
        });
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any text and `?` for any one byte.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(b) if *b == b'?' || *b == name[n] => {
                p += 1;
                n += 1;
            }
            // Lets the last star take one more byte.
            _ => match &mut retry {
                Some((after_star, taken)) => {
                    *taken += 1;
                    (p, n) = (*after_star, *taken);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|b| *b == b'*')
}

fn read_file(file: &Path, text: &[u8], set: &mut Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), Failure> {
    for (index, line) in text.split(|b| *b == b'\n').enumerate() {
        let begin = line.len() - line.trim_ascii_start().len();
        let line_end = line.trim_ascii_end();
        let mut rest = line_end.get(begin..).unwrap_or_default();
        if rest.is_empty() || rest.starts_with(b"#") {
            continue;
        }
        if let Some(after) = rest.strip_prefix(b"export ") {
            rest = after.trim_ascii_start();
        }
        let wrong = |at: &[u8], expected: &str| {
            let column = line_end.len() - at.len() + 1;
            let found = String::from_utf8_lossy(at);
            let found = if found.is_empty() { "the end of the line".into() } else { format!("'{found}'") };
            Failure::usage(format!(
                "{}:{}:{column}: expected {expected}, found {found}",
                file.display(),
                index + 1
            ))
        };
        let Some(equals) = rest.iter().position(|b| *b == b'=') else {
            return Err(wrong(rest, "NAME=VALUE"));
        };
        let (name, value) =
            (rest.get(..equals).unwrap_or_default(), rest.get(equals + 1..).unwrap_or_default());
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        if name.is_empty() || name[0].is_ascii_digit() || !name.iter().all(is_name) {
            return Err(wrong(rest, "the name of a variable"));
        }
        let value = match value {
            [quote @ (b'"' | b'\''), inner @ .., last] if quote == last => inner,
            [b'"' | b'\'', ..] => return Err(wrong(value, "a closing quote at the end of the line")),
            _ => value,
        };
        set.push((name.to_vec(), value.to_vec()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Environment {
        [("HOME", "/root"), ("OMPI_A", "1"), ("OMPI_B", "2"), ("OTHER", "3")]
            .map(|(n, v)| (n.into(), v.into()))
            .to_vec()
    }

    fn set(words: &[&str]) -> (Vec<String>, Vec<String>) {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let mut notes = Vec::new();
        let set = additions(&[], &words, &own(), &mut notes).expect("good words");
        (set.iter().map(Text::to_string_lossy).collect(), notes)
    }

    #[test]
    fn values_are_set_or_handed_on() {
        assert_eq!(set(&["A=1", "HOME", "B="]).0, ["A=1", "HOME=/root", "B="]);
        assert_eq!(set(&["OMPI_*"]).0, ["OMPI_A=1", "OMPI_B=2"]);
        assert_eq!(set(&["O*", "OTHER=x=y"]).0, ["OMPI_A=1", "OMPI_B=2", "OTHER=x=y"]);
        assert_eq!(set(&["OMPI_?"]).0.len(), 2);
    }

    #[test]
    fn unset_variables_are_remarked() {
        assert_eq!(
            set(&["NOPE", "NO*"]).1,
            ["-x NOPE: the variable is not set", "-x 'NO*': no variable matches"]
        );
        let wildcard = additions(&[], &["A*=1".into()], &own(), &mut Vec::new());
        assert!(wildcard.expect_err("no name").message.contains("A*=1"));
    }

    #[test]
    fn exports_are_what_srun_makes_of_them() {
        let own: Environment = [("A", "1"), ("B", "2"), ("PMIX_RANK", "0"), ("SLURM_JOB_ID", "7")]
            .map(|(n, v)| (n.into(), v.into()))
            .to_vec();
        let exported = |words: Option<&str>| {
            let exported = super::exported(words.map(OsStr::new), &own, &mut Vec::new())?;
            let env: Vec<String> = exported.env.iter().map(Text::to_string_lossy).collect();
            Ok::<_, Failure>((env.join(" "), exported.is_all))
        };
        for (words, env, is_all) in [
            (None, "A=1 B=2 SLURM_JOB_ID=7", true),
            (Some("ALL"), "A=1 B=2 SLURM_JOB_ID=7", true),
            (Some("ALL,B=x=y,C=3"), "A=1 B=x=y SLURM_JOB_ID=7 C=3", true),
            (Some("B,C=3"), "SLURM_JOB_ID=7 B=2 C=3", false),
            (Some("A,A="), "SLURM_JOB_ID=7 A=", false),
            (Some("NOPE"), "SLURM_JOB_ID=7", false),
            (Some("NONE"), "SLURM_JOB_ID=7", false),
            (Some("NIL"), "SLURM_JOB_ID=7", false),
        ] {
            assert_eq!(exported(words).expect("good words"), (env.to_owned(), is_all), "{words:?}");
        }
        for words in ["", "A,", "=1", "NONE,A", "ALL,NIL"] {
            assert!(exported(Some(words)).is_err(), "{words}");
        }
    }

    #[test]
    fn pxs_identity_in_an_outer_job_is_not_inherited() {
        let own =
            [("PMIX_RANK", "3"), ("PMIX_SERVER_URI41", "x"), ("PMIX_MCA_gds", "hash"), ("PMI_RANK", "3")]
                .map(|(n, v)| (n.into(), v.into()))
                .to_vec();
        assert_eq!(inherited(&own), ["PMIX_MCA_gds=hash"]);
    }

    #[test]
    fn wildcards() {
        for (pattern, name, yes) in [
            ("*", "", true),
            ("*", "A", true),
            ("A*", "A", true),
            ("A*C", "ABBC", true),
            ("A*C*E", "ABCCDE", true),
            ("A*C", "ABBD", false),
            ("?", "", false),
            ("*?*?", "AB", true),
            ("*?*?", "A", false),
            ("A", "AB", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), yes, "{pattern} {name}");
        }
    }

    fn file(text: &str) -> Result<Vec<String>, String> {
        let mut set = Vec::new();
        read_file(Path::new("f"), text.as_bytes(), &mut set).map_err(|failure| failure.to_string())?;
        Ok(set.iter().map(|(n, v)| assignment(n, v).to_string_lossy()).collect())
    }

    #[test]
    fn files_hold_assignments() {
        let text = "# comment\n\nA=1\n  export B=\"two words\"\nC='x'\nD=\nE=a=b # kept\n";
        assert_eq!(
            file(text),
            Ok(["A=1", "B=two words", "C=x", "D=", "E=a=b # kept"].map(String::from).to_vec())
        );
    }

    #[test]
    fn errors_in_files_name_the_place() {
        assert_eq!(file("A=1\n  nothing"), Err("f:2:3: expected NAME=VALUE, found 'nothing'".into()));
        assert_eq!(file("1A=1"), Err("f:1:1: expected the name of a variable, found '1A=1'".into()));
        assert_eq!(
            file("A=\"x"),
            Err("f:1:3: expected a closing quote at the end of the line, found '\"x'".into())
        );
    }
}
