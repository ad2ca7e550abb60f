//! Names of numbers and keys, for people and for programs that are given names.
//!
//! Strings that a program does not free are in one constant block, terminated by NULs: the tables of `phalanx-spec` have
//! none.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

use phalanx_spec as spec;
use phalanx_wire::{InfoFlags, ResourceUnit, Value};

use crate::guard::exported;
use crate::layout::*;
use crate::name_block::NAMES;
use crate::pointer::Ptr;
use crate::{cmem, from_c};

macro_rules! names {
    ($($function:ident($repr:ty): $type:ident)+) => {
        exported! {
            $(
                /// Not to be freed.
                fn $function(number: $repr) -> Ptr<u8> {
                    shared(spec::$type(number).name(), || spec::$type(number).to_string())
                }
            )+
        }
    };
}

names! {
    PMIx_Error_string(i32): Status
    PMIx_Alloc_directive_string(u8): AllocDirective
    PMIx_Data_range_string(u8): Range
    PMIx_Data_type_string(u16): DataType
    PMIx_Device_type_string(u64): DeviceType
    PMIx_IOF_channel_string(u16): IofChannel
    PMIx_Job_state_string(u8): JobState
    PMIx_Link_state_string(u8): LinkState
    PMIx_Persistence_string(u8): Persistence
    PMIx_Proc_state_string(u8): ProcState
    PMIx_Scope_string(u8): Scope
    PMIx_Value_comparison_string(i32): ValueCmp
    PMIx_Group_operation_string(i32): GroupOperation
    PMIx_Resource_block_directive_string(u8): ResourceBlockDirective
}

exported! {
    /// The number of a status by its name; `PMIX_ERR_NOT_FOUND`... if there is none, the largest `int`.
    fn PMIx_Error_code(name: Ptr<u8>) -> i32 {
        let name = name.text().and_then(|name| String::from_utf8(name).ok()).unwrap_or_default();
        let full = if name.starts_with("PMIX_") { name } else { format!("PMIX_{}", name.replace('-', "_")) };
        spec::Status::from_name(&full).map_or(i32::MAX, |status| status.0)
    }

    /// The key of an attribute's name; an unknown name is returned unchanged.
    fn PMIx_Get_attribute_string(name: Ptr<u8>) -> Ptr<u8> {
        let found = text(name).and_then(|name| spec::attribute_by_name(&name));
        found.map_or(name, |attribute| shared(Some(attribute.key), || attribute.key.to_owned()))
    }

    /// The name of the attribute of a key; an unknown key is returned unchanged.
    fn PMIx_Get_attribute_name(key: Ptr<u8>) -> Ptr<u8> {
        let found = text(key).and_then(|key| spec::attribute(&key));
        found.map_or(key, |attribute| shared(Some(attribute.name), || attribute.name.to_owned()))
    }

    fn PMIx_Info_directives_string(flags: u32) -> Ptr<u8> {
        let names = [
            (InfoFlags::REQUIRED, "REQUIRED"),
            (InfoFlags::ARRAY_END, "ARRAY END"),
            (InfoFlags::REQUIRED_PROCESSED, "PROCESSED"),
            (InfoFlags::QUALIFIER, "QUALIFIER"),
            (InfoFlags::PERSISTENT, "PERSISTENT"),
        ];
        let set: Vec<_> = names.iter().filter(|(flag, _)| flags & flag.bits() != 0).map(|(_, name)| *name).collect();
        let said = if flags & InfoFlags::REQUIRED.bits() == 0 { "OPTIONAL" } else { "" };
        let all: Vec<_> = [said].into_iter().filter(|said| !said.is_empty()).chain(set).collect();
        owned(&all.join(":"))
    }

    fn PMIx_Info_string(info: Ptr<pmix_info_t>) -> Ptr<u8> {
        info.read().and_then(|c| from_c::info(&c).ok()).map_or(Ptr::NULL, |info| owned(&info.to_string()))
    }

    fn PMIx_Value_string(value: Ptr<pmix_value_t>) -> Ptr<u8> {
        value.read().and_then(|c| from_c::value(&c).ok()).map_or(Ptr::NULL, |value| owned(&value.to_string()))
    }

    fn PMIx_Proc_string(proc: Ptr<pmix_proc_t>) -> Ptr<u8> {
        proc.read().and_then(|c| from_c::proc(&c).ok()).map_or(Ptr::NULL, |proc| owned(&proc.to_string()))
    }

    fn PMIx_App_string(app: Ptr<pmix_app_t>) -> Ptr<u8> {
        let app = app.read().and_then(|c| from_c::app(&c).ok());
        app.map_or(Ptr::NULL, |app| owned(&Value::App(Box::new(app)).to_string()))
    }

    fn PMIx_Resource_unit_string(unit: Ptr<pmix_resource_unit_t>) -> Ptr<u8> {
        unit.read().map_or(Ptr::NULL, |c| {
            let ResourceUnit { device_type, count } = from_c::resource_unit(&c);
            owned(&format!("{count} {:?}", spec::DeviceType(device_type)))
        })
    }

    /// Our name, and the level of the interface. Not to be freed.
    fn PMIx_Get_version() -> Ptr<u8> {
        constant(VERSION)
    }
}

/// Identifies the library to programs and people.
const VERSION: &CStr = match CStr::from_bytes_with_nul(
    concat!("Phalanx ", env!("CARGO_PKG_VERSION"), " (PMIx interface 6.1)\0").as_bytes(),
) {
    Ok(version) => version,
    Err(_) => c"Phalanx",
};

fn constant(text: &'static CStr) -> Ptr<u8> {
    // SAFETY: it is static, and programs do not write to it.
    unsafe { Ptr::from_raw(text.as_ptr().cast_mut().cast()) }
}

/// A name in the block, or one made once and kept: sets of flags have too many names for a table.
fn shared(name: Option<&str>, other: impl FnOnce() -> String) -> Ptr<u8> {
    static MADE: Mutex<BTreeMap<String, CString>> = Mutex::new(BTreeMap::new());
    if let Some(found) = name.and_then(in_block) {
        return found;
    }
    let text = other();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if made.len() >= MOST_MADE {
        return constant(c"UNKNOWN");
    }
    let kept = made.entry(text).or_insert_with_key(|text| CString::new(text.as_str()).unwrap_or_default());
    // SAFETY: entries are never moved, and programs do not write to them.
    unsafe { Ptr::from_raw(kept.as_ptr().cast_mut().cast()) }
}

fn in_block(name: &str) -> Option<Ptr<u8>> {
    let wanted = format!("\0{name}\0");
    let at = NAMES.find(&wanted)?;
    let found = NAMES.get(at + 1..)?;
    // SAFETY: the block is static, and programs do not write to it.
    Some(unsafe { Ptr::from_raw(found.as_ptr().cast_mut()) })
}

fn owned(text: &str) -> Ptr<u8> {
    cmem::text(text.as_bytes())
}

fn text(c: Ptr<u8>) -> Option<String> {
    c.text().and_then(|text| String::from_utf8(text).ok())
}

/// Bounds the memory for a program that asks for the names of random numbers.
const MOST_MADE: usize = 4096;
