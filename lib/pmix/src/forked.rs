//! The id of this process, without asking the kernel each time: a get takes less time than a system call.
//!
//! It is kept in a page that the kernel wipes in forked children, however they were forked. Without such a page the kernel
//! is asked.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// NULL before first use; [`nowhere`] if the page is not available. Never unmapped: a library like ours stays loaded.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The id of this process. In a child that shares its parent's memory (`vfork`) it is the parent's.
pub fn process_id() -> u32 {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        page = make_page();
    }
    if page == nowhere() {
        return process::id();
    }
    // SAFETY: a page that was mapped below, zeroed, and stays.
    let number = unsafe { &*page };
    match number.load(Ordering::Relaxed) {
        0 => {
            let id = process::id();
            number.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

fn make_page() -> *mut AtomicU32 {
    let page = map().unwrap_or(nowhere());
    match PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => page,
        Err(other) => {
            if page != nowhere() {
                // SAFETY: no other thread has seen it.
                let _ = unsafe { munmap(page.cast(), PAGE_SIZE) };
            }
            other
        }
    }
}

fn map() -> Option<*mut AtomicU32> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), PAGE_SIZE, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the mapping is ours, and empty.
    match unsafe { madvise(page, PAGE_SIZE, Advice::LinuxWipeOnFork) } {
        Ok(()) => Some(page.cast()),
        Err(_) => {
            // SAFETY: as above.
            let _ = unsafe { munmap(page, PAGE_SIZE) };
            None
        }
    }
}

fn nowhere() -> *mut AtomicU32 {
    static NOWHERE: AtomicU32 = AtomicU32::new(0);
    ptr::from_ref(&NOWHERE).cast_mut()
}

/// The kernel rounds it up to a page, if pages are larger.
const PAGE_SIZE: usize = 4096;
