//! Pointers of C programs: the one place where they are followed.
//!
//! Whether a pointer is valid, and for how many elements, is what a program promises by calling us with it; nobody but a
//! program and `cmem.rs` makes one. Whoever makes one here of something else, or says that something else is behind it, is
//! `unsafe` and says why that holds; so is whoever goes further along it than over the elements that it was made for, or puts a
//! type beside a union. What is behind a pointer is copied out or in, never borrowed for longer than a call lasts. NULL is
//! always noticed here.

use std::mem::MaybeUninit;

use phalanx_spec::DataType;

/// A pointer to one `T` or to an array of them.
#[repr(transparent)]
pub(crate) struct Ptr<T>(*mut T);

/// What a `void *` points to: nothing that can be read or written before somebody says what it is.
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

/// The type of what stands beside it: of a value's union, of an array's elements. Reading follows it, so it is made of a number only
/// by who says that this is what is there.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u16);

/// The union of a `pmix_value_t`: which member is there says the type beside it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Data([MaybeUninit<u8>; 24]);

/// Types without invariants: whatever bytes a C program has put there is a value, zeroes included.
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

// SAFETY: an address; who follows it on another thread does so on the program's word, as on this one.
unsafe impl<T> Send for Ptr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Ptr<T> {}

impl<T> Ptr<T> {
    pub(crate) const NULL: Ptr<T> = Ptr(std::ptr::null_mut());

    /// # Safety
    /// NULL, or as many `T` are there as will be read or written through it, for as long as that happens.
    pub(crate) unsafe fn from_raw(raw: *mut T) -> Ptr<T> {
        Ptr(raw)
    }

    pub(crate) fn raw(self) -> *mut T {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The same address, without a word on what is there.
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
    /// So many are there, or nobody follows the pointer.
    pub(crate) unsafe fn at(self, index: usize) -> Ptr<T> {
        if self.is_null() { self } else { Ptr(self.0.wrapping_add(index)) }
    }

    /// Where the elements of an array are, as many as are there on the word of who has made the pointer; nowhere behind NULL.
    pub(crate) fn places(self, count: usize) -> impl Iterator<Item = Ptr<T>> {
        let count = if self.is_null() { 0 } else { count };
        (0..count).map(move |index| Ptr(self.0.wrapping_add(index)))
    }

    /// How far `later` lies behind, in elements; 0 if it does not.
    pub(crate) fn distance_to(self, later: Ptr<T>) -> usize {
        (later.0 as usize).saturating_sub(self.0 as usize) / size_of::<T>().max(1)
    }
}

impl<T: Plain> Ptr<T> {
    /// What is there; nothing behind NULL.
    pub(crate) fn read(self) -> Option<T> {
        // SAFETY: not NULL, so the program's word holds; any bytes are a T.
        (!self.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Nothing happens behind NULL.
    pub(crate) fn write(self, value: T) {
        if !self.is_null() {
            // SAFETY: not NULL, so the program's word holds. Nothing is dropped: T is Copy.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// The elements of an array; none behind NULL.
    pub(crate) fn items(self, count: usize) -> impl Iterator<Item = T> {
        self.places(count).filter_map(Ptr::read)
    }
}

impl Ptr<u8> {
    /// A copy of so many bytes.
    pub(crate) fn bytes(self, count: usize) -> Vec<u8> {
        if self.is_null() {
            return Vec::new();
        }
        // SAFETY: not NULL, so the program's word holds for `count` bytes.
        unsafe { std::slice::from_raw_parts(self.0, count) }.to_vec()
    }

    /// What is made of a C string, without its NUL, while it is looked at; nothing behind NULL.
    pub(crate) fn with_text<R>(self, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // SAFETY: not NULL, so it is a C string on the program's word, for as long as this call lasts.
        (!self.is_null()).then(|| look(unsafe { std::ffi::CStr::from_ptr(self.0.cast()) }.to_bytes()))
    }

    /// A copy of a C string, without its NUL; nothing behind NULL.
    pub(crate) fn text(self) -> Option<Vec<u8>> {
        self.with_text(<[u8]>::to_vec)
    }

    /// Puts these bytes there; nothing happens behind NULL.
    pub(crate) fn fill(self, bytes: &[u8]) {
        if !self.is_null() {
            // SAFETY: not NULL, so the program's word holds for as many bytes; ours cannot overlap them.
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
    /// A number in the place of an address: nobody follows it.
    pub(crate) fn token(number: usize) -> Ptr<Opaque> {
        Ptr(std::ptr::without_provenance_mut(number))
    }

    pub(crate) fn number(self) -> usize {
        self.0.addr()
    }
}

impl Tag {
    /// Of nothing.
    pub(crate) const UNDEF: Tag = Tag(DataType::UNDEF.0);

    /// # Safety
    /// What it is put beside is of this type, or empty.
    pub(crate) unsafe fn of(of: DataType) -> Tag {
        Tag(of.0)
    }

    pub(crate) fn data_type(self) -> DataType {
        DataType(self.0)
    }
}

impl Data {
    pub(crate) const ZERO: Data = Data([MaybeUninit::new(0); 24]);

    /// The member that is a pointer to whatever.
    pub(crate) fn pointer(&self) -> Ptr<Opaque> {
        // SAFETY: any address is one of something unsaid.
        unsafe { self.get() }
    }

    /// # Safety
    /// It was set as a `T`, if that has pointers inside that will be followed.
    pub(crate) unsafe fn get<T: Plain>(&self) -> T {
        const { assert!(size_of::<T>() <= size_of::<Data>()) }
        // SAFETY: large enough; what a program sets only in part, C reads in whole as well.
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
