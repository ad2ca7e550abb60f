//! Wraps every exported function: no panic crosses the border, failures become codes.
//!
//! `exported!` makes a C function of a Rust body. With `-> Code` the body ends in a `Result<(), Status>`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use phalanx_spec::Status;

use crate::pointer::Ptr;

/// The return type of most functions: `pmix_status_t`.
pub(crate) type Code = i32;

pub(crate) fn code(result: Result<(), Status>) -> Code {
    result.err().unwrap_or(Status::SUCCESS).0
}

/// The value that a function returns after a panic.
pub(crate) trait Failed {
    const FAILED: Self;
}

macro_rules! failed {
    ($($type:ty = $value:expr),+) => {$(
        impl Failed for $type {
            const FAILED: Self = $value;
        }
    )+};
}
failed! { () = (), bool = false, i32 = Status::ERROR.0, u32 = 0, usize = 0 }

impl<T> Failed for Ptr<T> {
    const FAILED: Self = Ptr::NULL;
}

/// For a NULL where the standard defines no meaning for it, and for invalid text.
pub(crate) const BAD: Status = Status::ERR_BAD_PARAM;

pub(crate) fn caught<T: Failed>(body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(T::FAILED)
}

/// `fn NAME(..) -> TYPE { .. }` as a C function; with `-> Code`, of a body that ends in a status or a result.
macro_rules! exported {
    () => {};
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> Code $body:block $($rest:tt)*) => {
        $(#[$doc])*
        #[allow(non_snake_case, clippy::too_many_arguments)]
        // SAFETY: the standard reserves this name.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $type),*) -> $crate::guard::Code {
            $crate::guard::caught(move || {
                let body = move || -> Result<(), phalanx_spec::Status> { $body };
                $crate::guard::code(body())
            })
        }
        $crate::guard::exported! { $($rest)* }
    };
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $ret:ty $body:block $($rest:tt)*) => {
        $(#[$doc])*
        #[allow(non_snake_case, clippy::too_many_arguments)]
        // SAFETY: the standard reserves this name.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $type),*) -> $ret {
            $crate::guard::caught(move || $body)
        }
        $crate::guard::exported! { $($rest)* }
    };
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::guard::exported! { $(#[$doc])* fn $name($($arg: $type),*) -> () $body $($rest)* }
    };
}
pub(crate) use exported;
