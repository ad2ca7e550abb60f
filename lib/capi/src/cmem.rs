//! Memory that crosses the C border comes from the C allocator: headers of 4.2 expand `malloc` and `free` inside programs.
//!
//! The only file that allocates for C or frees for it. When memory runs out the process ends, as anywhere in Rust.

use std::alloc::{Layout, handle_alloc_error};

use crate::pointer::{Plain, Ptr};

/// Zeroed room for this many elements; NULL for none.
pub(crate) fn array<T: Plain>(count: usize) -> Ptr<T> {
    if count == 0 || size_of::<T>() == 0 {
        return Ptr::NULL;
    }
    // SAFETY: calloc checks the product itself.
    checked(unsafe { libc::calloc(count, size_of::<T>()) })
}

/// Room that the caller fills completely: glibc finds it faster than zeroed room. NULL for none.
fn unfilled<T: Plain>(count: usize) -> Ptr<T> {
    match count.saturating_mul(size_of::<T>()) {
        0 => Ptr::NULL,
        // SAFETY: any size is allowed; one that is too large fails.
        size => checked(unsafe { libc::malloc(size) }),
    }
}

fn checked<T>(raw: *mut libc::c_void) -> Ptr<T> {
    if raw.is_null() {
        handle_alloc_error(Layout::new::<T>());
    }
    // SAFETY: the caller has allocated room for as many as it writes.
    unsafe { Ptr::from_raw(raw.cast()) }
}

/// One element with this value.
pub(crate) fn one<T: Plain>(value: T) -> Ptr<T> {
    let room = unfilled(1);
    room.write(value);
    room
}

/// An array of these; NULL for none.
pub(crate) fn array_of<T: Plain>(items: &[T]) -> Ptr<T> {
    let room = unfilled(items.len());
    room.places(items.len()).zip(items).for_each(|(place, item)| place.write(*item));
    room
}

/// A copy of these bytes; NULL for none.
pub(crate) fn bytes(bytes: &[u8]) -> Ptr<u8> {
    let room = unfilled(bytes.len());
    room.fill(bytes);
    room
}

/// A C string with these bytes.
pub(crate) fn text(text: &[u8]) -> Ptr<u8> {
    let room = unfilled(text.len() + 1);
    room.fill(text);
    // SAFETY: there is room for one more.
    unsafe { room.at(text.len()) }.write(0);
    room
}

/// A NULL-terminated array of C strings; NULL for none.
pub(crate) fn argv(texts: &[impl AsRef<[u8]>]) -> Ptr<Ptr<u8>> {
    if texts.is_empty() {
        return Ptr::NULL;
    }
    let room = array(texts.len() + 1);
    room.places(texts.len()).zip(texts).for_each(|(place, one)| place.write(text(one.as_ref())));
    room
}

/// Frees memory from `malloc`, called here or in the program.
pub(crate) fn free<T>(memory: Ptr<T>) {
    // SAFETY: memory that PMIx structures own was allocated by malloc, as the interface requires. NULL is allowed.
    unsafe { libc::free(memory.raw().cast()) }
}

/// Frees an array of C strings.
pub(crate) fn free_argv(argv: Ptr<Ptr<u8>>) {
    strings(argv).into_iter().for_each(free);
    free(argv);
}

/// The strings of a NULL-terminated array.
pub(crate) fn strings(argv: Ptr<Ptr<u8>>) -> Vec<Ptr<u8>> {
    argv.items(usize::MAX).take_while(|text| !text.is_null()).collect()
}
