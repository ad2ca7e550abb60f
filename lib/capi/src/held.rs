//! Objects of ours that programs hold by opaque handles: growing lists, and things to be released later.
//!
//! A handle is a number. One that was never given out, or that has been taken back, finds nothing: a program that releases
//! twice gets an error instead of corrupting memory.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::pointer::{Opaque, Ptr};

#[derive(Default)]
struct Held {
    all: HashMap<usize, Box<dyn Any + Send>>,
    last: usize,
}

/// Stores a value and returns the program's handle for it.
pub(crate) fn hold<T: Any + Send>(value: T) -> Ptr<Opaque> {
    let mut held = held();
    held.last += 1;
    let number = held.last;
    held.all.insert(number, Box::new(value));
    Ptr::token(number)
}

/// Accesses the value of a handle; `None` if it has another type, or is gone.
pub(crate) fn with<T: Any, R>(named: Ptr<Opaque>, look: impl FnOnce(&mut T) -> R) -> Option<R> {
    held().all.get_mut(&named.number())?.downcast_mut().map(look)
}

/// Takes the value of a handle back.
pub(crate) fn take<T: Any>(named: Ptr<Opaque>) -> Option<T> {
    let mut held = held();
    if !held.all.get(&named.number())?.is::<T>() {
        return None;
    }
    held.all.remove(&named.number())?.downcast().ok().map(|value| *value)
}

fn held() -> MutexGuard<'static, Held> {
    static HELD: LazyLock<Mutex<Held>> = LazyLock::new(Mutex::default);
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_objects_are_found_until_they_are_taken_back() {
        let (text, number) = (hold("text".to_owned()), hold(7_u32));
        assert_eq!(with(text, |text: &mut String| text.push('s')), Some(()));
        assert_eq!(take::<String>(text).as_deref(), Some("texts"));
        assert_eq!(take::<String>(text), None, "it was taken back");
        assert_eq!(take::<String>(number), None, "it is something else");
        assert_eq!(take::<u32>(number), Some(7));
        assert_eq!(with(Ptr::NULL, |_: &mut String| ()), None);
    }
}
