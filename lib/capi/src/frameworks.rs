//! The one name outside of the headers that programs link: Open MPI 5 looks through the names of OpenPMIx's frameworks to find
//! out which settings are for its library. There are none here.

use crate::pointer::Ptr;

/// An array of C strings that ends with NULL.
#[allow(non_upper_case_globals)]
// SAFETY: nobody but OpenPMIx has this name, in whose place we are.
#[unsafe(no_mangle)]
pub(crate) static pmix_framework_names: [Ptr<u8>; 1] = [Ptr::NULL];
