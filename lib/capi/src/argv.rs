//! NULL-terminated arrays of C strings: command lines, environments, lists of keys.

use phalanx_spec::Status;

use crate::cmem;
use crate::guard::{BAD, exported};
use crate::pointer::Ptr;

pub(crate) type Argv = Ptr<Ptr<u8>>;

exported! {
    fn PMIx_Argv_append_nosize(argv: Ptr<Argv>, arg: Ptr<u8>) -> Code {
        append(argv, arg.text().ok_or(BAD)?)
    }

    fn PMIx_Argv_append_unique_nosize(argv: Ptr<Argv>, arg: Ptr<u8>) -> Code {
        let arg = arg.text().ok_or(BAD)?;
        let known = texts(argv.read().ok_or(BAD)?).contains(&arg);
        if known { Ok(()) } else { append(argv, arg) }
    }

    fn PMIx_Argv_prepend_nosize(argv: Ptr<Argv>, arg: Ptr<u8>) -> Code {
        let arg = cmem::text(&arg.text().ok_or(BAD)?);
        let old = argv.read().ok_or(BAD)?;
        let mut all = vec![arg];
        all.extend(cmem::strings(old));
        replace(argv, old, all);
        Ok(())
    }

    fn PMIx_Argv_copy(argv: Argv) -> Argv {
        if argv.is_null() {
            return Ptr::NULL;
        }
        let texts = texts(argv);
        if texts.is_empty() { cmem::array(1) } else { cmem::argv(&texts) }
    }

    fn PMIx_Argv_count(argv: Argv) -> i32 {
        i32::try_from(cmem::strings(argv).len()).unwrap_or(i32::MAX)
    }

    fn PMIx_Argv_free(argv: Argv) {
        cmem::free_argv(argv);
    }

    /// An empty array gives an empty string.
    fn PMIx_Argv_join(argv: Argv, delimiter: i32) -> Ptr<u8> {
        cmem::text(&texts(argv).join(byte(delimiter).as_slice()))
    }

    fn PMIx_Argv_split(text: Ptr<u8>, delimiter: i32) -> Argv {
        split(text, delimiter, false)
    }

    fn PMIx_Argv_split_with_empty(text: Ptr<u8>, delimiter: i32) -> Argv {
        split(text, delimiter, true)
    }

    fn PMIx_Argv_split_inter(text: Ptr<u8>, delimiter: i32, with_empty: bool) -> Argv {
        split(text, delimiter, with_empty)
    }

    /// Sets `NAME=VALUE` in the caller's environment array; a NULL value unsets the variable. The process's own environment
    /// is never changed.
    fn PMIx_Setenv(name: Ptr<u8>, value: Ptr<u8>, overwrite: bool, env: Ptr<Argv>) -> Code {
        set(env, &name.text().ok_or(BAD)?, value.text().as_deref(), overwrite)
    }
}

/// The value of a variable in an environment array.
pub(crate) fn get(env: Ptr<Argv>, name: &[u8]) -> Option<Vec<u8>> {
    let start = [name, b"="].concat();
    let all = texts(env.read()?);
    all.into_iter().find_map(|one| one.strip_prefix(&*start).map(<[u8]>::to_vec))
}

/// Sets a variable in an environment array; without a value it is removed.
pub(crate) fn set(env: Ptr<Argv>, name: &[u8], value: Option<&[u8]>, overwrite: bool) -> Result<(), Status> {
    let mut start = [name, b"="].concat();
    let old = env.read().ok_or(BAD)?;
    let mut all = cmem::strings(old);
    let known = all.iter().position(|one| one.text().is_some_and(|one| one.starts_with(&start)));
    match (known, value) {
        (Some(at), None) => cmem::free(all.remove(at)),
        (None, None) => return Ok(()),
        (Some(_), Some(_)) if !overwrite => return Err(Status::ERR_EXISTS),
        (known, Some(value)) => {
            start.extend(value);
            let new = cmem::text(&start);
            match known.and_then(|at| all.get_mut(at)) {
                Some(place) => cmem::free(std::mem::replace(place, new)),
                None => all.push(new),
            }
        }
    }
    replace(env, old, all);
    Ok(())
}

pub(crate) fn texts(argv: Argv) -> Vec<Vec<u8>> {
    cmem::strings(argv).into_iter().filter_map(Ptr::text).collect()
}

fn append(argv: Ptr<Argv>, arg: Vec<u8>) -> Result<(), Status> {
    let old = argv.read().ok_or(BAD)?;
    let mut all = cmem::strings(old);
    all.push(cmem::text(&arg));
    replace(argv, old, all);
    Ok(())
}

/// Replaces the old array by one of these strings, which are not copied.
fn replace(argv: Ptr<Argv>, old: Argv, mut all: Vec<Ptr<u8>>) {
    all.push(Ptr::NULL);
    argv.write(cmem::array_of(&all));
    cmem::free(old);
}

fn split(text: Ptr<u8>, delimiter: i32, with_empty: bool) -> Argv {
    let Some(text) = text.text().filter(|text| !text.is_empty()) else { return Ptr::NULL };
    let [delimiter] = byte(delimiter);
    let parts: Vec<_> =
        text.split(|b| *b == delimiter).filter(|part| with_empty || !part.is_empty()).collect();
    cmem::argv(&parts)
}

/// C passes a `char` as an `int`.
fn byte(delimiter: i32) -> [u8; 1] {
    let [byte, ..] = delimiter.to_le_bytes();
    [byte]
}
