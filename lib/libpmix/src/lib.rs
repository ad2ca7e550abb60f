//! `libpmix.so.2`. Its exports are in `phalanx-capi`; its link options, in `build.rs`.

use phalanx_capi as _;
