//! Queries: the server answers what it knows and asks the host for the rest.
//!
//! The server knows its jobs, process sets and groups, the nodes that its host described, and the attributes that its verbs
//! honour: that answer is made from the tables of the verb files, so it always matches them.

use phalanx_spec::{Status, functions, keys};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::{DataArray, Info, InfoList, Key, Kval, ProcId, Query, Text, Value};

use super::attributes::HostAttributes;
use super::config::ServerConfig;
use super::directive::{self, as_array};
use super::group::{self, Groups};
use super::host::{Then, as_failure};
use super::job_data::Describer;
use super::peer::Asker;
use super::pset::Psets;
use super::registry::Jobs;
use super::turn::Cx;
use super::{connect, event, fence, get, iof, monitor, publish};
use crate::host::{Asked, HostOp, HostReply};
use crate::support::{self, Honoured, Layer, OuterSupport};

/// The attributes that each function honours here, without the host.
pub(super) const FUNCTIONS: &[Honoured] = &[
    (functions::CONNECT, &[connect::ATTRIBUTES]),
    (functions::DISCONNECT, &[connect::ATTRIBUTES]),
    (functions::FENCE, &[fence::ATTRIBUTES]),
    (functions::GET, &[get::ATTRIBUTES]),
    (functions::GROUP_CONSTRUCT, &[group::CONSTRUCT_ATTRIBUTES]),
    (functions::GROUP_DESTRUCT, &[group::DESTRUCT_ATTRIBUTES]),
    (functions::IOF_PULL, iof::OUTPUT_DEFAULTS),
    (functions::LOOKUP, &[publish::LOOKUP_ATTRIBUTES]),
    (functions::NOTIFY_EVENT, &[event::NOTIFY_ATTRIBUTES]),
    (functions::PROCESS_MONITOR, &[monitor::ATTRIBUTES]),
    (functions::PUBLISH, &[publish::PUBLISH_ATTRIBUTES]),
    (functions::QUERY_INFO, &[ATTRIBUTES]),
    (functions::REGISTER_EVENT_HANDLER, &[event::REGISTER_ATTRIBUTES]),
    (functions::UNPUBLISH, &[publish::UNPUBLISH_ATTRIBUTES]),
];

/// The keys and qualifiers that are answered without the host.
pub(super) const ATTRIBUTES: &[&str] = &[
    keys::QUERY_ATTRIBUTE_SUPPORT,
    keys::SERVER_ATTRIBUTES,
    keys::SERVER_FUNCTIONS,
    keys::QUERY_NUM_PSETS,
    keys::QUERY_PSET_NAMES,
    keys::QUERY_PSET_MEMBERSHIP,
    keys::PSET_NAME,
    keys::QUERY_GROUP_NAMES,
    keys::QUERY_GROUP_MEMBERSHIP,
    keys::GROUP_ID,
    keys::NSPACE,
    keys::HOSTNAME,
    keys::NODEID,
    keys::NODE_INFO_ARRAY,
    keys::SERVER_URI,
    keys::HWLOC_XML_V2,
    keys::HWLOC_XML_V1,
];

/// The tables that answers are read from, besides the jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a> {
    pub(super) describer: &'a Describer,
    pub(super) psets: &'a Psets,
    pub(super) groups: &'a Groups,
    pub(super) host: &'a HostAttributes,
    /// What the library around the server honours.
    pub(super) outer: &'static OuterSupport,
}

pub(super) fn on_query(cx: &mut Cx<'_>, sources: Sources<'_>, from: Asker, request: Queries) {
    let mut known = Vec::new();
    let mut spare = Vec::new();
    let mut rest = Vec::new();
    let order: Vec<Text> = request.queries.iter().flat_map(|query| query.keys.iter().cloned()).collect();
    for query in request.queries {
        if directive::unknown(&query.qualifiers, ATTRIBUTES).is_some() {
            rest.push(query);
            continue;
        }
        let mut unknown = Vec::new();
        for key in query.keys {
            match key.as_str().and_then(|key| sources.answer_to(cx, &from, key, &query.qualifiers)) {
                Some(answer) => known.push(answer),
                None if key == keys::QUERY_ATTRIBUTE_SUPPORT => {
                    known.push(sources.attributes(&query.qualifiers));
                    if sources.host.is_empty() && Layer::Host.is_asked(&query.qualifiers) {
                        unknown.push(key);
                    }
                }
                None => {
                    match key.as_str() {
                        Some(keys::QUERY_NAMESPACES) => spare.push(namespaces(&cx.peers.jobs)),
                        // Only the host knows groups without a local member.
                        Some(keys::QUERY_GROUP_NAMES) => spare.extend(group_names(sources.groups)),
                        _ => {}
                    }
                    unknown.push(key);
                }
            }
        }
        if !unknown.is_empty() {
            rest.push(Query { keys: unknown, qualifiers: query.qualifiers });
        }
    }
    if rest.is_empty() {
        let status = if known.is_empty() { Status::ERR_BAD_PARAM } else { Status::SUCCESS };
        return cx.answer_infos(from, status, known);
    }
    let proc = from.proc.clone();
    let op = HostOp::Query(Asked { from: proc.clone(), request: Queries { queries: rest } });
    cx.ask(Some(&proc), op, Then::AnswerQuery { to: from, order, known, spare });
}

/// Adds the host's answers to the `known` ones, in the `order` of the questions. `spare`: the server's answers where the host
/// has none.
pub(super) fn on_query_answered(
    cx: &mut Cx<'_>,
    to: Asker,
    order: &[Text],
    (known, spare): (Vec<Info>, Vec<Info>),
    reply: HostReply,
) {
    let mut info = known;
    let status = match reply {
        HostReply::Infos(status, more) if status.is_success() || status == Status::QUERY_PARTIAL_SUCCESS => {
            // A host that answers may still not know groups.
            let is_left = |spare: &Info| {
                spare.key == keys::QUERY_GROUP_NAMES && more.iter().all(|info| info.key != spare.key)
            };
            info.extend(spare.into_iter().filter(is_left));
            info.extend(more);
            status
        }
        other => {
            info.extend(spare);
            as_failure(other.status())
        }
    };
    let is_answered = |key: &Text| info.iter().any(|info| *key == *info.key.as_str());
    let status = match order.iter().all(is_answered) {
        true => Status::SUCCESS,
        false if info.is_empty() || status.is_success() => status,
        false => Status::QUERY_PARTIAL_SUCCESS,
    };
    support::join(&mut info);
    info.sort_by_key(|info| order.iter().position(|key| *key == *info.key.as_str()).unwrap_or(order.len()));
    cx.answer_infos(to, status, info);
}

impl Sources<'_> {
    fn attributes(&self, qualifiers: &[Info]) -> Info {
        let mut ours = Layer::Server.answer(&[FUNCTIONS, self.outer.server], qualifiers);
        ours.extend(self.host.answer(qualifiers));
        Info::new(keys::QUERY_ATTRIBUTE_SUPPORT, DataArray::of_infos(ours))
    }

    fn answer_to(&self, cx: &Cx<'_>, from: &Asker, key: &str, qualifiers: &[Info]) -> Option<Info> {
        let name = |qualifier: &str| qualifiers.find(qualifier).and_then(Value::as_str);
        Some(match key {
            keys::SERVER_FUNCTIONS => {
                Info::new(keys::SERVER_FUNCTIONS, support::names(&[FUNCTIONS, self.outer.server]))
            }
            keys::HOST_FUNCTIONS if !self.host.is_empty() => {
                Info::new(keys::HOST_FUNCTIONS, self.host.names())
            }
            keys::SERVER_URI if is_named_by(cx.config, qualifiers) => {
                let remote = cx.config.remote.as_ref().map(|remote| &remote.address);
                let address = remote.unwrap_or(&cx.config.address);
                let ProcId { nspace, rank } = &cx.config.identity;
                Info::new(keys::SERVER_URI, format!("{nspace}.{rank};{address}"))
            }
            keys::HWLOC_XML_V2 | keys::HWLOC_XML_V1 if is_named_by(cx.config, qualifiers) => {
                let Kval { key, value } = self.describer.topology.value(&Key::new(key).ok()?)?;
                Info { key, flags: Default::default(), value }
            }
            keys::QUERY_NUM_PSETS => {
                let count = self.psets.names().count();
                Info::new(keys::QUERY_NUM_PSETS, u64::try_from(count).map(Value::Size).ok()?)
            }
            keys::QUERY_PSET_NAMES => {
                Info::new(keys::QUERY_PSET_NAMES, self.psets.names().collect::<Vec<_>>().join(","))
            }
            keys::QUERY_PSET_MEMBERSHIP => {
                let members = self.psets.members(name(keys::PSET_NAME)?)?;
                Info::new(keys::QUERY_PSET_MEMBERSHIP, as_array(members))
            }
            keys::QUERY_GROUP_MEMBERSHIP => {
                let members = self.groups.members(name(keys::GROUP_ID)?, &from.proc)?;
                Info::new(keys::QUERY_GROUP_MEMBERSHIP, as_array(members))
            }
            _ => {
                if let Some(answer) = self.describer.resources.answer_to(key, qualifiers) {
                    return Some(answer);
                }
                let nspace = match qualifiers.find(keys::NSPACE) {
                    Some(Value::ProcNspace(nspace)) => nspace.as_str(),
                    Some(value) => value.as_str()?,
                    None => from.proc.nspace.as_str(),
                };
                let values = self.describer.loose_values(cx.peers.jobs.named(nspace)?);
                let value = values.into_iter().find(|v| v.key == *key)?;
                Info { key: value.key, flags: Default::default(), value: value.value }
            }
        })
    }
}

/// The groups with local members; the host may know more.
fn group_names(groups: &Groups) -> Option<Info> {
    let names = groups.names().collect::<Vec<_>>().join(",");
    (!names.is_empty()).then(|| Info::new(keys::QUERY_GROUP_NAMES, names))
}

/// The jobs that are registered here; the host may know more.
fn namespaces(jobs: &Jobs) -> Info {
    let names: Vec<&str> = jobs.iter().map(|job| job.info().nspace.as_str()).collect();
    Info::new(keys::QUERY_NAMESPACES, names.join(","))
}

/// Whether the qualifiers name no node, or certainly this server's.
fn is_named_by(config: &ServerConfig, qualifiers: &[Info]) -> bool {
    let name = qualifiers.find(keys::HOSTNAME).and_then(Value::as_str);
    name.is_none_or(|name| name == config.hostname) && qualifiers.find(keys::NODEID).is_none()
}
