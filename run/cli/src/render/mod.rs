//! How px presents its messages: tables, trees, JSON, colours, errors with their hints.

pub(crate) mod decided;
pub(crate) mod ending;
pub(crate) mod hint;
pub(crate) mod nodes;
pub(crate) mod ps;
pub(crate) mod stacks;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod top;
pub(crate) mod tree;
pub(crate) mod value;
pub(crate) mod words;
