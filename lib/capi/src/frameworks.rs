//! Data symbols that programs link: Open MPI 5 searches the names of OpenPMIx's frameworks for settings that belong to its
//! library, and there are none here; tools built on the library print, or replace, its version and bug-report address.

use std::sync::atomic::AtomicPtr;

use crate::pointer::Ptr;

/// A NULL-terminated array of C strings.
#[allow(non_upper_case_globals)]
// SAFETY: only OpenPMIx, which we replace, uses this name.
#[unsafe(no_mangle)]
pub(crate) static pmix_framework_names: [Ptr<u8>; 1] = [Ptr::NULL];

/// A C string. It is a variable: programs may set their own.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) static PMIX_PROXY_VERSION: AtomicPtr<u8> = text(concat!(env!("CARGO_PKG_VERSION"), "\0"));

/// The same.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) static PMIX_PROXY_BUGREPORT: AtomicPtr<u8> = text("the Phalanx project\0");

const fn text(terminated: &'static str) -> AtomicPtr<u8> {
    AtomicPtr::new(terminated.as_ptr().cast_mut())
}
