//! Arguments of upcalls: copies in C memory that live until the host has answered.

use phalanx_spec::Status;
use phalanx_wire::{App, Blob, Info, Key, ProcId, Query, ResourceUnit, Text};

use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::{Release, free_array};
use crate::{cmem, to_c};

/// Everything that was allocated for one upcall; dropping it frees it.
#[derive(Default)]
pub(super) struct Args(Vec<Part>);

struct Part {
    at: Ptr<Opaque>,
    count: usize,
    free: fn(Ptr<Opaque>, usize),
}

impl Args {
    pub(super) fn proc(&mut self, proc: &ProcId) -> Ptr<pmix_proc_t> {
        self.plain(cmem::one(to_c::proc(proc)))
    }

    pub(super) fn procs(&mut self, procs: &[ProcId]) -> (Ptr<pmix_proc_t>, usize) {
        let all: Vec<_> = procs.iter().map(to_c::proc).collect();
        (self.plain(cmem::array_of(&all)), all.len())
    }

    pub(super) fn infos(&mut self, infos: &[Info]) -> Result<(Ptr<pmix_info_t>, usize), Status> {
        let array = to_c::infos(infos)?;
        Ok((self.structures(array, infos.len()), infos.len()))
    }

    pub(super) fn apps(&mut self, apps: &[App]) -> Result<(Ptr<pmix_app_t>, usize), Status> {
        let all = apps.iter().map(to_c::app).collect::<Result<Vec<_>, _>>()?;
        Ok((self.structures(cmem::array_of(&all), all.len()), all.len()))
    }

    pub(super) fn queries(&mut self, queries: &[Query]) -> Result<(Ptr<pmix_query_t>, usize), Status> {
        let all = queries.iter().map(to_c::query).collect::<Result<Vec<_>, _>>()?;
        Ok((self.structures(cmem::array_of(&all), all.len()), all.len()))
    }

    pub(super) fn units(&mut self, units: &[ResourceUnit]) -> (Ptr<pmix_resource_unit_t>, usize) {
        let all: Vec<_> = units.iter().map(to_c::resource_unit).collect();
        (self.plain(cmem::array_of(&all)), all.len())
    }

    pub(super) fn codes(&mut self, codes: &[Status]) -> (Ptr<i32>, usize) {
        let all: Vec<i32> = codes.iter().map(|code| code.0).collect();
        (self.plain(cmem::array_of(&all)), all.len())
    }

    pub(super) fn text(&mut self, text: &str) -> Ptr<u8> {
        self.plain(cmem::text(text.as_bytes()))
    }

    pub(super) fn object(&mut self, blob: &Blob) -> Ptr<pmix_byte_object_t> {
        self.structures(cmem::one(to_c::blob(blob)), 1)
    }

    /// Keys; NULL for none, which means all.
    pub(super) fn keys(&mut self, keys: &[Key]) -> Ptr<Ptr<u8>> {
        let texts: Vec<_> = keys.iter().map(|key| Text::from_bytes(key.as_str().as_bytes())).collect();
        let argv = to_c::argv(&texts);
        self.0.push(Part {
            at: argv.erased(),
            count: 0,
            // SAFETY: it is called only with this `at`.
            free: |at, _| cmem::free_argv(unsafe { at.cast() }),
        });
        argv
    }

    fn plain<T>(&mut self, at: Ptr<T>) -> Ptr<T> {
        self.0.push(Part { at: at.erased(), count: 0, free: |at, _| cmem::free(at) });
        at
    }

    fn structures<T: Release>(&mut self, at: Ptr<T>, count: usize) -> Ptr<T> {
        self.0.push(Part {
            at: at.erased(),
            count,
            // SAFETY: it is called only with this `at`.
            free: |at, count| free_array(unsafe { at.cast::<T>() }, count),
        });
        at
    }
}

impl Drop for Args {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|part| (part.free)(part.at, part.count));
    }
}
