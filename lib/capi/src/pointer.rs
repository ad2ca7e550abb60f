//! Pointers of C programs: the only place where they are followed.
//!
//! By calling us, a program guarantees that a pointer is valid, and for how many elements; only a program and `cmem.rs` make
//! one. Code here that makes a pointer of anything else, or changes its type, is `unsafe` and states why that is sound; so is
//! code that goes beyond the elements that a pointer was made for, or puts a type beside a union. Data behind a pointer is
//! copied out or in, never borrowed for longer than a call. NULL is always checked here.

use std::mem::MaybeUninit;

use phalanx_spec::DataType;

/// A pointer to one `T` or to an array of them.
#[repr(transparent)]
pub(crate) struct Ptr<T>(*mut T);

/// The target of a `void *`: it cannot be read or written before its type is known.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Opaque([u8; 0]);

/// C's `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Timeval {
    pub(crate) sec: i64,
    pub(crate) usec: i64,
}

/// The type of the data beside it: of a value's union, of an array's elements. Reading relies on it, so only code that knows the
/// data makes one from a number.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u16);

/// The union of a `pmix_value_t`: the type beside it identifies the member.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Data([MaybeUninit<u8>; 24]);

/// Types without invariants: any bytes from a C program are a valid value, including zeroes.
///
/// # Safety
/// Exactly that, and the type must have C's layout.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ty)+) => {$(
        // SAFETY: integers, floats, pointers and C structs of them.
        unsafe impl $crate::pointer::Plain for $name {}
    )+};
}
pub(crate) use plain;

plain! { u8 u16 u32 u64 usize i8 i16 i32 i64 f32 f64 Opaque Timeval Data Tag [u8; 256] [u8; 512] }

// SAFETY: any address is a value.
unsafe impl<T> Plain for Ptr<T> {}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> PartialEq for Ptr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

// SAFETY: an address; following it on another thread relies on the program's guarantee, as on this one.
unsafe impl<T> Send for Ptr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Ptr<T> {}

impl<T> Ptr<T> {
    pub(crate) const NULL: Ptr<T> = Ptr(std::ptr::null_mut());

    /// # Safety
    /// NULL, or it points to as many `T` as will be read or written through it, for as long as that happens.
    pub(crate) unsafe fn from_raw(raw: *mut T) -> Ptr<T> {
        Ptr(raw)
    }

    pub(crate) fn raw(self) -> *mut T {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The same address, without a type.
    pub(crate) fn erased(self) -> Ptr<Opaque> {
        Ptr(self.0.cast())
    }

    /// # Safety
    /// As of [`from_raw`](Ptr::from_raw), for `U`.
    pub(crate) unsafe fn cast<U>(self) -> Ptr<U> {
        Ptr(self.0.cast())
    }

    /// The element `index` places further on; NULL stays NULL.
    ///
    /// # Safety
    /// That element exists, or the pointer is not followed.
    pub(crate) unsafe fn at(self, index: usize) -> Ptr<T> {
        if self.is_null() { self } else { Ptr(self.0.wrapping_add(index)) }
    }

    /// Pointers to the elements of an array of `count`, which the maker of the pointer guarantees; none for NULL.
    pub(crate) fn places(self, count: usize) -> impl Iterator<Item = Ptr<T>> {
        let count = if self.is_null() { 0 } else { count };
        (0..count).map(move |index| Ptr(self.0.wrapping_add(index)))
    }

    /// The distance to `later` in elements; 0 if that is not behind.
    pub(crate) fn distance_to(self, later: Ptr<T>) -> usize {
        (later.0 as usize).saturating_sub(self.0 as usize) / size_of::<T>().max(1)
    }
}

impl<T: Plain> Ptr<T> {
    /// Reads the value; `None` for NULL.
    pub(crate) fn read(self) -> Option<T> {
        // SAFETY: not NULL, so the program's guarantee holds; any bytes are a T.
        (!self.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Writes the value; does nothing for NULL.
    pub(crate) fn write(self, value: T) {
        if !self.is_null() {
            // SAFETY: not NULL, so the program's guarantee holds. Nothing is dropped: T is Copy.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// The elements of an array; none for NULL.
    pub(crate) fn items(self, count: usize) -> impl Iterator<Item = T> {
        self.places(count).filter_map(Ptr::read)
    }
}

impl Ptr<u8> {
    /// A copy of `count` bytes.
    pub(crate) fn bytes(self, count: usize) -> Vec<u8> {
        if self.is_null() {
            return Vec::new();
        }
        // SAFETY: not NULL, so the program's guarantee holds for `count` bytes.
        unsafe { std::slice::from_raw_parts(self.0, count) }.to_vec()
    }

    /// Applies a function to a C string, without its NUL; `None` for NULL.
    pub(crate) fn with_text<R>(self, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // SAFETY: not NULL, so the program guarantees a C string, for as long as this call lasts.
        (!self.is_null()).then(|| look(unsafe { std::ffi::CStr::from_ptr(self.0.cast()) }.to_bytes()))
    }

    /// A copy of a C string, without its NUL; `None` for NULL.
    pub(crate) fn text(self) -> Option<Vec<u8>> {
        self.with_text(<[u8]>::to_vec)
    }

    /// Writes these bytes; does nothing for NULL.
    pub(crate) fn fill(self, bytes: &[u8]) {
        if !self.is_null() {
            // SAFETY: not NULL, so the program's guarantee holds for as many bytes; ours cannot overlap them.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, bytes.len()) }
        }
    }
}

impl<const N: usize> Ptr<[u8; N]> {
    /// Its first byte.
    pub(crate) fn start(self) -> Ptr<u8> {
        Ptr(self.0.cast())
    }
}

impl Ptr<Opaque> {
    /// A number in place of an address: it is never followed.
    pub(crate) fn token(number: usize) -> Ptr<Opaque> {
        Ptr(std::ptr::without_provenance_mut(number))
    }

    pub(crate) fn number(self) -> usize {
        self.0.addr()
    }
}

impl Tag {
    /// The type of empty data.
    pub(crate) const UNDEF: Tag = Tag(DataType::UNDEF.0);

    /// # Safety
    /// The data beside it is of this type, or empty.
    pub(crate) unsafe fn of(of: DataType) -> Tag {
        Tag(of.0)
    }

    pub(crate) fn data_type(self) -> DataType {
        DataType(self.0)
    }
}

impl Data {
    pub(crate) const ZERO: Data = Data([MaybeUninit::new(0); 24]);

    /// The union's pointer member.
    pub(crate) fn pointer(&self) -> Ptr<Opaque> {
        // SAFETY: any address is a valid opaque pointer.
        unsafe { self.get() }
    }

    /// # Safety
    /// It was set as a `T`, if `T` has pointers inside that will be followed.
    pub(crate) unsafe fn get<T: Plain>(&self) -> T {
        const { assert!(size_of::<T>() <= size_of::<Data>()) }
        // SAFETY: large enough; C also reads members in whole that a program has set only in part.
        unsafe { self.0.as_ptr().cast::<T>().read_unaligned() }
    }

    /// # Safety
    /// It is put beside the tag of this type.
    pub(crate) unsafe fn of<T: Plain>(value: T) -> Data {
        const { assert!(size_of::<T>() <= size_of::<Data>()) }
        let mut data = Data::ZERO;
        // SAFETY: large enough.
        unsafe { data.0.as_mut_ptr().cast::<T>().write_unaligned(value) }
        data
    }
}
