//! Placement policies, and the syntax in which users give them: `--map-by`, `--rank-by`, `--bind-to`.
//!
//! Owns the three small grammars. A directive and its qualifiers are separated by colons, are read in any case, and may be
//! shortened as long as only one word remains possible (`pack`, `L3`), as users of `prterun` are used to. What is not given
//! stays unset here; `defaults` settles it when the number of ranks is known.

use std::fmt;
use std::str::FromStr;

use phalanx_topo::{CpuSet, Level};

use super::words::{self, Word};
use super::{Rankfile, Sequence};
use crate::encoding::encoded;

/// The placement policy of a job or of one app context. The default sets nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// `--map-by`.
    pub map: MapPolicy,
    /// `--rank-by`; by default it follows from the mapping.
    pub rank: Option<RankBy>,
    /// `--bind-to`.
    pub bind: BindPolicy,
    /// `--cpu-set`: use only these CPUs of every node, by the kernel's numbers, as far as they are allowed.
    pub cpu_set: Option<CpuSet>,
    /// The contents of the file of `--map-by seq:file=PATH`, read by the caller.
    pub sequence: Option<Sequence>,
    /// The contents of the file of `--map-by rankfile:file=PATH`, read by the caller.
    pub rankfile: Option<Rankfile>,
}

/// Where the next rank goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapBy {
    /// To the same node until its slots are used, then to the next.
    Slot,
    /// To the next node.
    Node,
    /// To the next object of this level on the same node until its slots are used, then to the next node.
    Object(Level),
    /// So many to each object of this level; [`Level::Machine`] is the node itself.
    PerResource { count: u32, level: Level },
    /// To the next line of a file, or the next host of a list.
    Sequence,
    /// To the place that a file gives it.
    Rankfile,
}

/// A `--map-by` option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapPolicy {
    /// The directive; `None` when only qualifiers were given.
    pub by: Option<MapBy>,
    /// `pe=N`: the number of CPUs for each rank.
    pub pe: Option<u32>,
    /// `span`: all nodes are one, so objects are filled evenly across them.
    pub span: bool,
    /// `oversubscribe` or `nooversubscribe`.
    pub oversubscribe: Option<bool>,
    /// `hwtcpus` or `corecpus`: whether a hardware thread or a core counts as a CPU.
    pub hwthreads: Option<bool>,
    /// `nolocal`: not on the node of the launcher.
    pub nolocal: bool,
    /// `file=PATH` for `seq` and `rankfile`.
    pub file: Option<String>,
}

/// In which order ranks are numbered over the places that mapping chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankBy {
    /// Node by node, in the order of mapping.
    Slot,
    /// One on each node, over and over.
    Node,
    /// Object by object.
    Fill,
    /// One on each object of all nodes, over and over.
    Span,
    /// Node by node, there one on each object of this level, over and over.
    Object(Level),
    /// As in the file of a sequence or rankfile; cannot be requested.
    File,
}

/// What a rank is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindTo {
    /// Nothing: the kernel may run it on any CPU that the node's daemon may use.
    None,
    /// All allowed CPUs of one object of this level.
    Object(Level),
}

/// A `--bind-to` option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BindPolicy {
    /// The directive; `None` when only qualifiers were given.
    pub to: Option<BindTo>,
    /// `overload-allowed`: more ranks than CPUs may be bound to an object.
    pub overload: bool,
    /// `if-supported`: a rank that cannot be bound this way runs unbound.
    pub if_supported: bool,
}

/// Why the text of an option is not a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The option, e.g. `--map-by`.
    pub option: &'static str,
    /// Its text, as given.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead, if that can be guessed.
    pub hint: Option<String>,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.option, self.text, self.problem)
    }
}

impl std::error::Error for PolicyError {}

impl FromStr for MapPolicy {
    type Err = PolicyError;

    /// `DIRECTIVE[:QUALIFIER]...`; the directive may be empty: `:oversubscribe`.
    fn from_str(text: &str) -> Result<MapPolicy, PolicyError> {
        let reader = Reader { option: "--map-by", text };
        let mut parts = text.split(':');
        let mut policy = MapPolicy::default();
        let directive = parts.next().unwrap_or_default();
        if !directive.is_empty() {
            policy.by = Some(match reader.word(directive, MAP_DIRECTIVES)? {
                Directive::By(by) => *by,
                Directive::PerResource => reader.per_resource(parts.next(), parts.next())?,
            });
        } else if text.is_empty() {
            return Err(reader.error(format!("expected one of {}", words::names(MAP_DIRECTIVES)), None));
        }
        for part in parts {
            let (word, value) =
                part.split_once('=').map_or((part, None), |(word, value)| (word, Some(value)));
            let qualifier = *reader.word(word, MAP_QUALIFIERS)?;
            match (qualifier, value) {
                (Qualifier::Cpus, value) => policy.pe = Some(reader.number("pe", value)?),
                (Qualifier::File, Some(path)) if !path.is_empty() => policy.file = Some(path.to_owned()),
                (Qualifier::File, _) => return Err(reader.error("file= needs a path".to_owned(), None)),
                (_, Some(_)) => return Err(reader.error(format!("{word} takes no value"), None)),
                (Qualifier::Span, None) => policy.span = true,
                (Qualifier::Oversubscribe(yes), None) => {
                    reader.agree(&mut policy.oversubscribe, yes, word)?
                }
                (Qualifier::Hwthreads(yes), None) => reader.agree(&mut policy.hwthreads, yes, word)?,
                (Qualifier::Nolocal, None) => policy.nolocal = true,
            }
        }
        reader.check(&policy)?;
        Ok(policy)
    }
}

impl FromStr for RankBy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<RankBy, PolicyError> {
        Reader { option: "--rank-by", text }.word(text, RANK_DIRECTIVES).copied()
    }
}

impl FromStr for BindPolicy {
    type Err = PolicyError;

    /// `OBJECT[:QUALIFIER]...`; the object may be empty: `:overload-allowed`.
    fn from_str(text: &str) -> Result<BindPolicy, PolicyError> {
        let reader = Reader { option: "--bind-to", text };
        let mut parts = text.split(':');
        let mut policy = BindPolicy::default();
        let directive = parts.next().unwrap_or_default();
        if !directive.is_empty() {
            policy.to = Some(*reader.word(directive, BIND_DIRECTIVES)?);
        } else if text.is_empty() {
            return Err(reader.error(format!("expected one of {}", words::names(BIND_DIRECTIVES)), None));
        }
        for part in parts {
            match reader.word(part, BIND_QUALIFIERS)? {
                BindQualifier::Overload(yes) => policy.overload = *yes,
                BindQualifier::IfSupported => policy.if_supported = true,
            }
        }
        Ok(policy)
    }
}

/// In the syntax of the option.
impl fmt::Display for MapPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(by) = self.by {
            by.fmt(f)?;
        }
        if let Some(cpus) = self.pe {
            write!(f, ":pe={cpus}")?;
        }
        let switch = |is_on: Option<bool>, on, off| is_on.map(|is_on| if is_on { on } else { off });
        let qualifiers = [
            self.span.then_some("span"),
            switch(self.oversubscribe, "oversubscribe", "nooversubscribe"),
            switch(self.hwthreads, "hwtcpus", "corecpus"),
            self.nolocal.then_some("nolocal"),
        ];
        qualifiers.into_iter().flatten().try_for_each(|qualifier| write!(f, ":{qualifier}"))?;
        self.file.iter().try_for_each(|file| write!(f, ":file={file}"))
    }
}

/// In the syntax of the option.
impl fmt::Display for BindPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(to) = self.to {
            to.fmt(f)?;
        }
        let qualifiers =
            [self.overload.then_some("overload-allowed"), self.if_supported.then_some("if-supported")];
        qualifiers.into_iter().flatten().try_for_each(|qualifier| write!(f, ":{qualifier}"))
    }
}

impl fmt::Display for MapBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapBy::Slot => f.write_str("slot"),
            MapBy::Node => f.write_str("node"),
            MapBy::Object(level) => level.fmt(f),
            MapBy::PerResource { count, level } => write!(f, "ppr:{count}:{level}"),
            MapBy::Sequence => f.write_str("seq"),
            MapBy::Rankfile => f.write_str("rankfile"),
        }
    }
}

impl fmt::Display for RankBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankBy::Slot => f.write_str("slot"),
            RankBy::Node => f.write_str("node"),
            RankBy::Fill => f.write_str("fill"),
            RankBy::Span => f.write_str("span"),
            RankBy::Object(level) => level.fmt(f),
            RankBy::File => f.write_str("file"),
        }
    }
}

impl fmt::Display for BindTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindTo::None => f.write_str("none"),
            BindTo::Object(level) => level.fmt(f),
        }
    }
}

/// The common part of the three grammars.
struct Reader<'a> {
    option: &'static str,
    text: &'a str,
}

impl Reader<'_> {
    fn error(&self, problem: String, hint: Option<String>) -> PolicyError {
        let text = self.text.chars().take(200).collect();
        PolicyError { option: self.option, text, problem, hint }
    }

    fn word<T>(&self, word: &str, words: &'static [Word<T>]) -> Result<&'static T, PolicyError> {
        words::find(word, words).map_err(|miss| self.error(miss.to_string(), miss.hint()))
    }

    fn number(&self, name: &str, value: Option<&str>) -> Result<u32, PolicyError> {
        match value.and_then(|value| value.parse().ok()) {
            Some(number) if number > 0 => Ok(number),
            _ => Err(self.error(format!("{name} needs a number above 0, as in {name}=2"), None)),
        }
    }

    fn per_resource(&self, count: Option<&str>, level: Option<&str>) -> Result<MapBy, PolicyError> {
        let form = || self.error("expected ppr:N:OBJECT, as in ppr:2:package".to_owned(), None);
        let count = count.and_then(|count| count.parse().ok()).filter(|count| *count > 0).ok_or_else(form)?;
        let level = *self.word(level.ok_or_else(form)?, PPR_OBJECTS)?;
        Ok(MapBy::PerResource { count, level })
    }

    /// Sets a switch that must not have been set the other way.
    fn agree(&self, switch: &mut Option<bool>, yes: bool, word: &str) -> Result<(), PolicyError> {
        match switch.replace(yes) {
            Some(before) if before != yes => {
                Err(self.error(format!("{word} contradicts an earlier qualifier"), None))
            }
            _ => Ok(()),
        }
    }

    /// Refuses qualifiers that make no sense with the directive.
    fn check(&self, policy: &MapPolicy) -> Result<(), PolicyError> {
        let from_file = matches!(policy.by, Some(MapBy::Sequence | MapBy::Rankfile));
        if policy.file.is_some() && !from_file {
            return Err(self.error("file= belongs to seq or rankfile".to_owned(), None));
        }
        if policy.by == Some(MapBy::Rankfile) && policy.file.is_none() {
            let hint = Some("--map-by rankfile:file=PATH".to_owned());
            return Err(self.error("rankfile needs a file".to_owned(), hint));
        }
        if policy.pe.is_some() && policy.by == Some(MapBy::Rankfile) {
            return Err(self.error("pe= and rankfile both say which CPUs a rank gets".to_owned(), None));
        }
        if policy.span && !matches!(policy.by, None | Some(MapBy::Object(_))) {
            let hint = Some("--map-by package:span".to_owned());
            return Err(self.error("span belongs to a hardware object".to_owned(), hint));
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Directive {
    By(MapBy),
    PerResource,
}

#[derive(Clone, Copy)]
enum Qualifier {
    Cpus,
    Span,
    Oversubscribe(bool),
    Hwthreads(bool),
    Nolocal,
    File,
}

enum BindQualifier {
    Overload(bool),
    IfSupported,
}

const fn object(level: Level) -> Directive {
    Directive::By(MapBy::Object(level))
}

const MAP_DIRECTIVES: &[Word<Directive>] = &[
    Word("slot", Directive::By(MapBy::Slot)),
    Word("hwthread", object(Level::Pu)),
    Word("core", object(Level::Core)),
    Word("l1cache", object(Level::L1)),
    Word("l2cache", object(Level::L2)),
    Word("l3cache", object(Level::L3)),
    Word("numa", object(Level::Numa)),
    Word("package", object(Level::Package)),
    Word("socket", object(Level::Package)),
    Word("node", Directive::By(MapBy::Node)),
    Word("seq", Directive::By(MapBy::Sequence)),
    Word("ppr", Directive::PerResource),
    Word("rankfile", Directive::By(MapBy::Rankfile)),
];

const PPR_OBJECTS: &[Word<Level>] = &[
    Word("node", Level::Machine),
    Word("package", Level::Package),
    Word("socket", Level::Package),
    Word("numa", Level::Numa),
    Word("l3cache", Level::L3),
    Word("l2cache", Level::L2),
    Word("l1cache", Level::L1),
    Word("core", Level::Core),
    Word("hwthread", Level::Pu),
];

const MAP_QUALIFIERS: &[Word<Qualifier>] = &[
    Word("pe", Qualifier::Cpus),
    Word("span", Qualifier::Span),
    Word("oversubscribe", Qualifier::Oversubscribe(true)),
    Word("nooversubscribe", Qualifier::Oversubscribe(false)),
    Word("hwtcpus", Qualifier::Hwthreads(true)),
    Word("corecpus", Qualifier::Hwthreads(false)),
    Word("nolocal", Qualifier::Nolocal),
    Word("file", Qualifier::File),
];

const RANK_DIRECTIVES: &[Word<RankBy>] = &[
    Word("slot", RankBy::Slot),
    Word("node", RankBy::Node),
    Word("fill", RankBy::Fill),
    Word("span", RankBy::Span),
    Word("package", RankBy::Object(Level::Package)),
    Word("socket", RankBy::Object(Level::Package)),
    Word("numa", RankBy::Object(Level::Numa)),
    Word("l3cache", RankBy::Object(Level::L3)),
    Word("l2cache", RankBy::Object(Level::L2)),
    Word("l1cache", RankBy::Object(Level::L1)),
    Word("core", RankBy::Object(Level::Core)),
    Word("hwthread", RankBy::Object(Level::Pu)),
];

const BIND_DIRECTIVES: &[Word<BindTo>] = &[
    Word("none", BindTo::None),
    Word("hwthread", BindTo::Object(Level::Pu)),
    Word("core", BindTo::Object(Level::Core)),
    Word("l1cache", BindTo::Object(Level::L1)),
    Word("l2cache", BindTo::Object(Level::L2)),
    Word("l3cache", BindTo::Object(Level::L3)),
    Word("numa", BindTo::Object(Level::Numa)),
    Word("package", BindTo::Object(Level::Package)),
    Word("socket", BindTo::Object(Level::Package)),
];

const BIND_QUALIFIERS: &[Word<BindQualifier>] = &[
    Word("overload-allowed", BindQualifier::Overload(true)),
    Word("no-overload", BindQualifier::Overload(false)),
    Word("if-supported", BindQualifier::IfSupported),
];

encoded!(enum MapBy { 0 Slot, 1 Node, 2 Object(level), 3 PerResource { count, level }, 4 Sequence, 5 Rankfile });
encoded!(enum RankBy { 0 Slot, 1 Node, 2 Fill, 3 Span, 4 Object(level), 5 File });
encoded!(enum BindTo { 0 None, 1 Object(level) });

#[cfg(test)]
mod tests;
