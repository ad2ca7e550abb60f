//! Growing lists of infos, which programs hold by opaque handles.

use phalanx_spec::{DataType, Status};
use phalanx_wire::InfoFlags;

use crate::guard::{BAD, exported};
use crate::held::{hold, take, with};
use crate::layout::*;
use crate::names::fixed;
use crate::pointer::{Opaque, Ptr};
use crate::release::{Release, free_array};
use crate::value::{copied, copied_info, loaded};
use crate::{cmem, to_c};

/// Each info is a separate allocation: a program may keep pointers to them while the list grows.
#[derive(Default)]
struct List(Vec<Ptr<pmix_info_t>>);

exported! {
    fn PMIx_Info_list_start() -> Ptr<Opaque> {
        hold(List::default())
    }

    fn PMIx_Info_list_release(list: Ptr<Opaque>) {
        if let Some(list) = take::<List>(list) {
            list.0.into_iter().for_each(|info| free_array(info, 1));
        }
    }

    fn PMIx_Info_list_add(list: Ptr<Opaque>, key: Ptr<u8>, data: Ptr<Opaque>, of: u16) -> Code {
        let info = new(key, loaded(data, DataType(of))?)?;
        add(list, info, true)
    }

    fn PMIx_Info_list_prepend(list: Ptr<Opaque>, key: Ptr<u8>, data: Ptr<Opaque>, of: u16) -> Code {
        let info = new(key, loaded(data, DataType(of))?)?;
        with(list, |list: &mut List| list.0.insert(0, cmem::one(info))).ok_or(BAD)
    }

    /// With `overwrite`, replaces an existing value of the same key; otherwise that stays.
    fn PMIx_Info_list_add_unique(
        list: Ptr<Opaque>, key: Ptr<u8>, data: Ptr<Opaque>, of: u16, overwrite: bool,
    ) -> Code {
        add_unique(list, new(key, loaded(data, DataType(of))?)?, overwrite)
    }

    fn PMIx_Info_list_add_value(list: Ptr<Opaque>, key: Ptr<u8>, value: Ptr<pmix_value_t>) -> Code {
        add(list, new(key, copied(&value.read().ok_or(BAD)?)?)?, true)
    }

    fn PMIx_Info_list_add_value_unique(
        list: Ptr<Opaque>, key: Ptr<u8>, value: Ptr<pmix_value_t>, overwrite: bool,
    ) -> Code {
        add_unique(list, new(key, copied(&value.read().ok_or(BAD)?)?)?, overwrite)
    }

    fn PMIx_Info_list_xfer(list: Ptr<Opaque>, info: Ptr<pmix_info_t>) -> Code {
        add(list, copied_info(&info.read().ok_or(BAD)?)?, true)
    }

    fn PMIx_Info_list_xfer_unique(list: Ptr<Opaque>, info: Ptr<pmix_info_t>, overwrite: bool) -> Code {
        add_unique(list, copied_info(&info.read().ok_or(BAD)?)?, overwrite)
    }

    /// The program keeps the value: the list only refers to it.
    fn PMIx_Info_list_insert(list: Ptr<Opaque>, info: Ptr<pmix_info_t>) -> Code {
        let c = info.read().ok_or(BAD)?;
        add(list, pmix_info_t { flags: c.flags | InfoFlags::PERSISTENT.bits(), ..c }, true)
    }

    /// An array with copies of all infos, the last marked as the end.
    fn PMIx_Info_list_convert(list: Ptr<Opaque>, to: Ptr<pmix_data_array_t>) -> Code {
        let there = with(list, |list: &mut List| list.0.clone()).ok_or(BAD)?;
        if to.is_null() {
            return Err(BAD);
        }
        let mut all = Vec::with_capacity(there.len());
        for info in there.iter().filter_map(|info| info.read()) {
            all.push(copied_info(&info)?);
        }
        let Some(last) = all.last_mut() else {
            to.write(to_c::array_of_infos(&[]));
            return Err(Status::ERR_EMPTY);
        };
        last.flags |= InfoFlags::ARRAY_END.bits();
        to.write(to_c::array_of_infos(&all));
        Ok(())
    }

    fn PMIx_Info_list_get_size(list: Ptr<Opaque>) -> usize {
        with(list, |list: &mut List| list.0.len()).unwrap_or(0)
    }

    /// The info `prev` (NULL: the first); `next` is set to the following one, NULL at the end.
    fn PMIx_Info_list_get_info(list: Ptr<Opaque>, prev: Ptr<Opaque>, next: Ptr<Ptr<Opaque>>) -> Ptr<pmix_info_t> {
        let found = with(list, |list: &mut List| {
            let mut from = list.0.iter().skip_while(|info| !prev.is_null() && info.erased() != prev);
            (from.next().copied(), from.next().copied())
        });
        let Some((found, behind)) = found else { return Ptr::NULL };
        next.write(behind.map_or(Ptr::NULL, Ptr::erased));
        found.unwrap_or(Ptr::NULL)
    }
}

fn new(key: Ptr<u8>, value: pmix_value_t) -> Result<pmix_info_t, Status> {
    if key.is_null() {
        value.release();
        return Err(BAD);
    }
    Ok(pmix_info_t { key: fixed(key), flags: 0, value })
}

fn add(list: Ptr<Opaque>, info: pmix_info_t, wanted: bool) -> Result<(), Status> {
    let known = with(list, |list: &mut List| {
        if wanted {
            list.0.push(cmem::one(info));
        }
    });
    if known.is_none() || !wanted {
        info.release();
    }
    known.ok_or(BAD)
}

fn add_unique(list: Ptr<Opaque>, info: pmix_info_t, overwrite: bool) -> Result<(), Status> {
    let same = |at: &&Ptr<pmix_info_t>| at.read().is_some_and(|c| c.key == info.key);
    let known = with(list, |list: &mut List| list.0.iter().find(same).copied()).flatten();
    match known {
        Some(old) if overwrite => {
            old.read().inspect(Release::release);
            old.write(info);
            Ok(())
        }
        known => add(list, info, known.is_none()),
    }
}
