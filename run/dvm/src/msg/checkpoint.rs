//! Checkpoints in job control: registering how a program can take one, and requesting one.
//!
//! The RFC, the standard and most releases use the key of the signal for the time limit, too. Of two numbers under that key the first is a signal,
//! the second a limit in seconds. A single one in a request is a signal if the targets have registered it, and else a limit.

use std::time::Duration;

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Text, Value};

use super::Control;

/// The directives that are read here.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::JOB_CTRL_CHECKPOINT,
    keys::JOB_CTRL_CHECKPOINT_EVENT,
    keys::JOB_CTRL_CHECKPOINT_METHOD,
    keys::JOB_CTRL_CHECKPOINT_SIGNAL,
    keys::JOB_CTRL_CHECKPOINT_TIMEOUT,
    keys::JOB_CTRL_PREEMPTIBLE,
    keys::JOB_CTRL_RESTART,
    PREEMPT,
];

/// Preempt ranks that allow it: they are alerted, take a checkpoint with this name if they can, and are ended.
pub const PREEMPT: &str = "phalanx.preempt";

/// How a program is made to take a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    /// An event with this code.
    Event(Status),
    Signal(i32),
    /// The command that the job was given for it.
    Command,
}

/// What a process registers about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registration {
    /// The methods that are known here, the preferred one first; none: it registered no methods.
    pub(crate) methods: Option<Vec<Method>>,
    pub(crate) preemptible: Option<bool>,
}

/// A checkpoint that is to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointCall {
    pub(crate) name: Text,
    /// The methods to use; none: as each process has registered.
    pub(crate) methods: Vec<Method>,
    pub(crate) limit: Duration,
    /// The only number given may be a limit instead of the signal among the methods.
    pub(crate) is_ambiguous: bool,
    /// Notify its processes that they are preempted, which they must have allowed.
    pub(crate) preempts: bool,
    /// Actions to carry out when all have taken it.
    pub(crate) then: Vec<Control>,
}

impl Registration {
    /// The registration in a call that requests no checkpoint.
    pub(crate) fn read(directives: &[Info]) -> Result<Option<Registration>, Status> {
        let methods = directives.find(keys::JOB_CTRL_CHECKPOINT_METHOD).map(|_| said(directives));
        let methods = methods.transpose()?.map(|said| said.methods);
        if methods.as_ref().is_some_and(Vec::is_empty) {
            return Err(Status::ERR_NOT_SUPPORTED);
        }
        let preemptible = directives.find(keys::JOB_CTRL_PREEMPTIBLE).map(Value::is_true);
        let says_any = methods.is_some() || preemptible.is_some();
        Ok(says_any.then_some(Registration { methods, preemptible }))
    }
}

impl CheckpointCall {
    pub(crate) fn read(directives: &[Info], then: &[Control]) -> Result<Option<CheckpointCall>, Status> {
        let preempt = directives.find(PREEMPT);
        let Some(name) = preempt.or(directives.find(keys::JOB_CTRL_CHECKPOINT)) else { return Ok(None) };
        let name = name.as_text().filter(|name| !name.as_bytes().is_empty()).ok_or(Status::ERR_BAD_PARAM)?;
        let Said { methods, limit, numbers } = said(directives)?;
        Ok(Some(CheckpointCall {
            name: name.clone(),
            methods,
            is_ambiguous: numbers == 1 && limit.is_none(),
            limit: limit.unwrap_or(PATIENCE),
            preempts: preempt.is_some(),
            then: then.to_vec(),
        }))
    }

    /// Decides what the only number is, given which signals the targets take checkpoints at.
    pub(crate) fn resolve(&mut self, is_registered: impl Fn(i32) -> bool) {
        let numbered =
            |method: &Method| if let Method::Signal(number) = method { Some(*number) } else { None };
        let Some(number) = self.methods.iter().find_map(numbered).filter(|_| self.is_ambiguous) else {
            return;
        };
        if !is_registered(number) {
            self.methods.retain(|method| *method != Method::Signal(number));
            self.limit = Duration::from_secs(number.unsigned_abs().into());
        }
        self.is_ambiguous = false;
    }
}

/// The checkpoint to restart ranks from; none: from the beginning.
pub(crate) fn restart(directives: &[Info]) -> Result<Option<Option<Text>>, Status> {
    match directives.find(keys::JOB_CTRL_RESTART) {
        None => Ok(None),
        Some(Value::String(name)) if !name.as_bytes().is_empty() => Ok(Some(Some(name.clone()))),
        Some(Value::String(_) | Value::NullString | Value::Undef) => Ok(Some(None)),
        Some(_) => Err(Status::ERR_BAD_PARAM),
    }
}

#[derive(Default)]
struct Said {
    methods: Vec<Method>,
    limit: Option<Duration>,
    /// Signals under the key that is also one of the limit.
    numbers: usize,
}

/// In the order of the directives.
fn said(directives: &[Info]) -> Result<Said, Status> {
    let mut said = Said::default();
    for Info { key, value, .. } in directives {
        match (key.as_str(), value) {
            (keys::JOB_CTRL_CHECKPOINT_EVENT, Value::Status(code)) if !code.is_success() => {
                said.methods.push(Method::Event(*code));
            }
            (keys::JOB_CTRL_CHECKPOINT_EVENT, value) if value.is_true() => {
                said.methods.push(Method::Event(Status::JCTRL_CHECKPOINT));
            }
            (keys::JOB_CTRL_CHECKPOINT_SIGNAL, value)
                if said.numbers == 0
                    && let Ok(Control::Signal(number)) = Control::signal(value) =>
            {
                said.numbers += 1;
                said.methods.push(Method::Signal(number));
            }
            (keys::JOB_CTRL_CHECKPOINT_TIMEOUT | keys::JOB_CTRL_CHECKPOINT_SIGNAL, value) => {
                let seconds = value.as_i64().and_then(|seconds| u64::try_from(seconds).ok());
                let seconds = seconds.filter(|seconds| *seconds > 0).ok_or(Status::ERR_BAD_PARAM)?;
                said.limit = Some(Duration::from_secs(seconds).min(LONGEST));
            }
            (keys::JOB_CTRL_CHECKPOINT_METHOD, value) => {
                let array = value.as_array().ok_or(Status::ERR_BAD_PARAM)?;
                let inside: Vec<Info> = array.infos().take(MOST_METHODS).cloned().collect();
                // One level deep: a list of methods contains no list.
                if inside.iter().any(|info| info.key == keys::JOB_CTRL_CHECKPOINT_METHOD) {
                    return Err(Status::ERR_BAD_PARAM);
                }
                let inside = self::said(&inside)?;
                said.methods.extend(inside.methods);
                said.limit = said.limit.or(inside.limit);
                said.numbers += inside.numbers;
            }
            _ => {}
        }
    }
    said.methods.truncate(MOST_METHODS);
    Ok(said)
}

/// The most methods that one process may register.
const MOST_METHODS: usize = 8;
/// The default time limit of a checkpoint.
const PATIENCE: Duration = Duration::from_secs(300);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use phalanx_wire::DataArray;

    use super::*;

    #[test]
    fn methods_come_in_the_order_in_which_they_were_said() {
        let code = Status(-3107);
        let methods = DataArray::of_infos([
            Info::new("unknown", true),
            Info::new(keys::JOB_CTRL_CHECKPOINT_SIGNAL, 12),
            Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, code),
            Info::new(keys::JOB_CTRL_CHECKPOINT_EVENT, true),
        ]);
        let directives = [
            Info::new(keys::JOB_CTRL_PREEMPTIBLE, true),
            Info::new(keys::JOB_CTRL_CHECKPOINT_METHOD, methods),
        ];
        let registered = Registration::read(&directives).unwrap().unwrap();
        let event = |code| Method::Event(code);
        let expected = vec![Method::Signal(12), event(code), event(Status::JCTRL_CHECKPOINT)];
        assert_eq!((registered.methods, registered.preemptible), (Some(expected), Some(true)));
    }

    #[test]
    fn a_second_number_under_the_key_of_the_signal_is_the_limit() {
        let signal = |number| Info::new(keys::JOB_CTRL_CHECKPOINT_SIGNAL, number);
        let name = Info::new(keys::JOB_CTRL_CHECKPOINT, "one");
        let read = |directives: &[Info]| CheckpointCall::read(directives, &[]).map(Option::unwrap);
        let call = read(&[name.clone(), signal(10), signal(5)]).unwrap();
        assert_eq!((call.methods, call.limit), (vec![Method::Signal(10)], Duration::from_secs(5)));
        let limit = Info::new(keys::JOB_CTRL_CHECKPOINT_TIMEOUT, 7);
        let call = read(&[name.clone(), limit]).unwrap();
        assert_eq!((call.methods, call.limit), (vec![], Duration::from_secs(7)));
        let call = read(&[name.clone(), signal(99)]).unwrap();
        assert_eq!((call.methods, call.limit), (vec![], Duration::from_secs(99)), "there is no such signal");
        assert_eq!(read(&[name, signal(0)]), Err(Status::ERR_BAD_PARAM));
    }

    #[test]
    fn registrations_with_an_unknown_method_are_refused() {
        let only = |value: Value| [Info::new(keys::JOB_CTRL_CHECKPOINT_METHOD, value)];
        let unknown = DataArray::of_infos([Info::new("unknown", true)]);
        let nested = DataArray::of_infos(only(unknown.clone().into()));
        assert_eq!(Registration::read(&only(unknown.into())), Err(Status::ERR_NOT_SUPPORTED));
        assert_eq!(Registration::read(&only(nested.into())), Err(Status::ERR_BAD_PARAM));
        assert_eq!(Registration::read(&only(7.into())), Err(Status::ERR_BAD_PARAM));
        assert_eq!(Registration::read(&[]), Ok(None));
    }
}
