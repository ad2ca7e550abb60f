//! The attributes that the standard requires, per function and per upcall of the host, with the party that must support them.
//!
//! What we advertise is compared with this table; nothing reads it to decide behaviour.

use crate::r#gen::required::APIS;

/// One list of attributes in the description of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub kind: Kind,
    /// The party that has to act on the attributes.
    pub audience: Audience,
    /// What it has to do with them.
    pub duty: Duty,
    pub when: When,
    /// For `PMIx_server_register_nspace` only: the subject of the data.
    pub realm: Option<Realm>,
    /// Everything that the client gave must reach the host too.
    pub pass_through: bool,
    /// Keys, in the order of the standard.
    pub keys: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Required,
    Optional,
    /// Listed by version 5 of the standard, but not by its successor.
    DroppedSinceV5,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Library,
    Host,
    LibraryOrHost,
    LibraryAndHost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    Support,
    Provide,
    /// The library adds them to what it passes to the host.
    IncludeInUpcall,
    PassThrough,
    PassToHandlers,
    SupportInData,
    SupportInDirectives,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    IfSupported,
    IfNotHandled,
    IfProvided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realm {
    Session,
    Job,
    App,
    Model,
    Node,
    NodeOwn,
    NodeOther,
    Proc,
    ProcLocal,
}

/// The lists of a function (`PMIx_Get`) or upcall (`pmix_server_spawn_fn_t`); empty when it has none.
pub fn for_api(name: &str) -> &'static [Block] {
    match APIS.binary_search_by_key(&name, |api| api.0) {
        Ok(found) => APIS.get(found).map_or(&[], |api| api.1),
        Err(_) => &[],
    }
}

/// All functions and upcalls that have lists, sorted by name.
pub fn apis() -> impl Iterator<Item = (&'static str, &'static [Block])> {
    APIS.iter().copied()
}
