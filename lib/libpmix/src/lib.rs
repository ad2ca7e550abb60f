//! `libpmix.so.2`. What it exports is in `phalanx-capi`; how it is linked, in `build.rs`.

use phalanx_capi as _;
