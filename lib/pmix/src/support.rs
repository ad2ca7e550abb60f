//! The attributes that this library honours itself, around the machines of the roles, as reported to queries for attribute
//! support. The calls themselves use the same tables.

use phalanx_core::server::OUTPUT_DEFAULTS;
use phalanx_core::support::OuterSupport;
use phalanx_spec::functions;
use phalanx_wire::Info;

use crate::error::Error;
use crate::{client, screen, server, tool};

pub(crate) const AROUND: &OuterSupport = &OuterSupport {
    client: &[
        (functions::IOF_PULL, screen::ATTRIBUTES),
        (functions::INIT, &[client::INIT_ATTRIBUTES]),
        (functions::QUERY_INFO, &[tool::ANSWERED_HERE]),
    ],
    tool: &[
        (functions::TOOL_ATTACH_TO_SERVER, &[tool::CONNECTION_ATTRIBUTES]),
        (functions::TOOL_CONNECT_TO_SERVER, &[tool::CONNECTION_ATTRIBUTES]),
        (functions::TOOL_INIT, &[tool::INIT_ATTRIBUTES, tool::CONNECTION_ATTRIBUTES]),
    ],
    server: &[
        (functions::SERVER_COLLECT_INVENTORY, &[server::INVENTORY_ATTRIBUTES]),
        (functions::SERVER_INIT, &[server::INIT_ATTRIBUTES]),
        (functions::SERVER_INIT, OUTPUT_DEFAULTS),
        (functions::SERVER_SETUP_APPLICATION, &[server::SETUP_ATTRIBUTES]),
        (functions::SERVER_SETUP_LOCAL_SUPPORT, &[server::SUPPORT_ATTRIBUTES]),
    ],
};

/// Refuses unknown required attributes.
pub(crate) fn check_required(info: &[Info], known: &[&[&str]]) -> Result<(), Error> {
    let unknown = |info: &&Info| info.is_required() && !known.concat().contains(&info.key.as_str());
    match info.iter().find(unknown) {
        Some(info) => Err(Error::Required { key: info.key.to_string() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use phalanx_core::support::Honoured;
    use phalanx_spec::{DataType, Status, attribute, keys};
    use phalanx_wire::{Info, Value};

    use super::*;
    use crate::server::ServerOptions;
    use crate::{Error, Tool};

    fn keys_of(table: &[Honoured], function: &str) -> Vec<&'static str> {
        let of_it = table.iter().filter(|(name, _)| *name == function);
        of_it.flat_map(|(_, lists)| lists.concat()).collect()
    }

    /// A value of the attribute's own type.
    fn required(key: &'static str) -> Info {
        let value = match attribute(key).map(|attribute| attribute.data_type) {
            Some(DataType::STRING) => Value::from("word"),
            Some(DataType::PROC_RANK) => Value::Rank(phalanx_spec::Rank(1)),
            Some(DataType::UINT32 | DataType::INT | DataType::UINT16) => Value::from(7_u32),
            _ => Value::from(true),
        };
        Info::new(key, value).required()
    }

    #[test]
    fn servers_take_listed_attributes_and_refuse_others_by_name() {
        let told = keys_of(AROUND.server, "PMIx_server_init");
        assert!(told.len() > 15, "{told:?}");
        for key in &told {
            let taken = ServerOptions::from_infos(&[required(key)]);
            assert!(taken.is_ok(), "{key}: {taken:?}");
        }
        for key in [keys::SERVER_GATEWAY, keys::TOOL_NSPACE] {
            assert!(!told.contains(&key));
            let refused = ServerOptions::from_infos(&[required(key)]).unwrap_err();
            assert_eq!(refused.status(), Status::ERR_NOT_SUPPORTED);
            assert!(refused.to_string().contains(key), "{refused}");
        }
    }

    #[test]
    fn tools_refuse_unlisted_attributes_by_name() {
        let told = keys_of(AROUND.tool, "PMIx_tool_init");
        for key in [keys::SERVER_GATEWAY, keys::COLLECT_DATA] {
            assert!(!told.contains(&key));
            match Tool::init(&[required(key)]) {
                Err(Error::Required { key: named }) => assert_eq!(named, key),
                other => panic!("{key}: {other:?}"),
            }
        }
        assert!(told.contains(&keys::TOOL_DO_NOT_CONNECT) && told.contains(&keys::SERVER_URI));
    }

    #[test]
    fn every_listed_attribute_is_one_of_the_standards() {
        let tables = [AROUND.client, AROUND.tool, AROUND.server].concat();
        for (function, lists) in tables {
            for key in lists.concat() {
                assert!(attribute(key).is_some(), "{key} of {function}");
            }
        }
    }
}
