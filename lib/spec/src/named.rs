//! Shared code of the generated number types: finding the name of a number, the number of a name, printing.
//!
//! `codes!` is for enumerations, `flags!` for sets of bits. Only the generated sources call them, with one table
//! of all names (sorted) and one of all values (sorted, each with the index of its preferred name).

use crate::packed::{Filling, Span};

/// Name, value, summary (which may be empty).
pub(crate) type Row<T> = (&'static str, T, &'static str);

/// All names of one type, without pointers: see `packed.rs`.
pub(crate) struct Names<T: 'static, const SIZE: usize, const COUNT: usize> {
    texts: [u8; SIZE],
    rows: [(Span, T, Span); COUNT],
}

pub(crate) const fn size_of_texts<T>(rows: &[Row<T>]) -> usize {
    let (mut size, mut index) = (0, 0);
    while index < rows.len() {
        size += rows[index].0.len() + rows[index].2.len();
        index += 1;
    }
    size
}

impl<T: Copy, const SIZE: usize, const COUNT: usize> Names<T, SIZE, COUNT> {
    /// `none` is any value; every row is overwritten.
    pub(crate) const fn new(from: &[Row<T>], none: T) -> Self {
        let mut texts = Filling::<SIZE>::new();
        let mut rows = [(Span::EMPTY, none, Span::EMPTY); COUNT];
        let mut index = 0;
        while index < COUNT {
            rows[index] = (texts.put(from[index].0), from[index].1, texts.put(from[index].2));
            index += 1;
        }
        Names { texts: texts.block, rows }
    }

    /// Name and summary.
    pub(crate) fn by_value(
        &'static self,
        values: &[(T, u16)],
        value: T,
    ) -> Option<(&'static str, &'static str)>
    where
        T: Ord,
    {
        let found = values.binary_search_by_key(&value, |entry| entry.0).ok()?;
        let (name, _, summary) = self.rows.get(usize::from(values.get(found)?.1))?;
        Some((name.of(&self.texts), summary.of(&self.texts)))
    }

    pub(crate) fn by_name(&'static self, name: &str) -> Option<T> {
        let found = self.rows.binary_search_by_key(&name, |row| row.0.of(&self.texts)).ok()?;
        Some(self.rows.get(found)?.1)
    }
}

macro_rules! lookups {
    ($type:ident($repr:ty); by_name [$($row:expr),* $(,)?] by_value [$($value:expr),* $(,)?]) => {
        impl $type {
            const ROWS: &'static [$crate::named::Row<$repr>] = &[$($row),*];
            const VALUES: &'static [($repr, u16)] = &[$($value),*];

            fn names() -> &'static $crate::named::Names<
                $repr,
                { $crate::named::size_of_texts($type::ROWS) },
                { $type::ROWS.len() },
            > {
                static NAMES: $crate::named::Names<
                    $repr,
                    { $crate::named::size_of_texts($type::ROWS) },
                    { $type::ROWS.len() },
                > = $crate::named::Names::new($type::ROWS, 0);
                &NAMES
            }

            /// The full name of a known value; where a value has several names, the current one.
            pub fn name(self) -> Option<&'static str> {
                Self::names().by_value(Self::VALUES, self.0).map(|found| found.0)
            }

            /// A one-line description of a known value, if there is one.
            pub fn describe(self) -> Option<&'static str> {
                Self::names()
                    .by_value(Self::VALUES, self.0)
                    .map(|found| found.1)
                    .filter(|summary| !summary.is_empty())
            }

            /// The value of a full name, deprecated ones included.
            pub fn from_name(name: &str) -> Option<$type> {
                Self::names().by_name(name).map($type)
            }

            /// All known values, in ascending order.
            pub fn all() -> impl Iterator<Item = $type> {
                Self::VALUES.iter().map(|entry| $type(entry.0))
            }
        }
    };
}

macro_rules! codes {
    ($type:ident($repr:ty); $($tables:tt)*) => {
        $crate::named::lookups! { $type($repr); $($tables)* }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($type), self.0),
                }
            }
        }
    };
}

macro_rules! flags {
    ($type:ident($repr:ty); $($tables:tt)*) => {
        $crate::named::lookups! { $type($repr); $($tables)* }

        impl $type {
            /// Whether all bits of `other` are set.
            pub const fn contains(self, other: $type) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any bit of `other` is set.
            pub const fn intersects(self, other: $type) -> bool {
                self.0 & other.0 != 0
            }

            /// Whether no bit is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl std::ops::BitOr for $type {
            type Output = $type;
            fn bitor(self, other: $type) -> $type {
                $type(self.0 | other.0)
            }
        }

        impl std::ops::BitOrAssign for $type {
            fn bitor_assign(&mut self, other: $type) {
                self.0 |= other.0;
            }
        }

        impl std::ops::BitAnd for $type {
            type Output = $type;
            fn bitand(self, other: $type) -> $type {
                $type(self.0 & other.0)
            }
        }

        impl std::fmt::Debug for $type {
            /// The name of the value, or the names of its bits, with unknown bits as a number.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                if let Some(name) = self.name() {
                    return f.write_str(name);
                }
                let mut rest = self.0;
                let mut separator = "";
                for &(bit, _) in Self::VALUES.iter().filter(|entry| entry.0.is_power_of_two()) {
                    if rest & bit != 0 {
                        write!(f, "{separator}{}", $type(bit).name().unwrap_or_default())?;
                        rest &= !bit;
                        separator = "|";
                    }
                }
                if rest != 0 || self.0 == 0 {
                    write!(f, "{separator}{rest:#x}")?;
                }
                Ok(())
            }
        }
    };
}

macro_rules! display {
    ($type:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self, f)
            }
        }
    };
}

pub(crate) use {codes, display, flags, lookups};
