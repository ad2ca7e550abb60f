//! Queries: what the server knows it answers, the rest it asks the host.
//!
//! The server knows its jobs, its process sets and groups, the nodes that its host has described, and which attributes its
//! verbs honour: that answer is made from the tables of the verb files, so it cannot say what is not so.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::query::QueryRequest;
use phalanx_wire::{DataArray, Info, InfoFlags, InfoList, ProcId, Query, Text, Value};

use super::host::{Then, as_failure};
use super::peer::Asker;
use super::{Cx, Server};
use super::{connect, directive, event, fence, get, group, iof, monitor, publish};
use crate::host::{HostOp, HostReply};
use crate::support::{self, Honoured, Layer};

/// What each function honours here, host aside.
const FUNCTIONS: &[Honoured] = &[
    ("PMIx_Connect", &[connect::ATTRIBUTES]),
    ("PMIx_Disconnect", &[connect::ATTRIBUTES]),
    ("PMIx_Fence", &[fence::ATTRIBUTES]),
    ("PMIx_Get", &[get::ATTRIBUTES]),
    ("PMIx_Group_construct", &[group::CONSTRUCT_ATTRIBUTES]),
    ("PMIx_Group_destruct", &[group::DESTRUCT_ATTRIBUTES]),
    ("PMIx_IOF_pull", iof::OUTPUT_DEFAULTS),
    ("PMIx_Lookup", &[publish::LOOKUP_ATTRIBUTES]),
    ("PMIx_Notify_event", &[event::NOTIFY_ATTRIBUTES]),
    ("PMIx_Process_monitor", &[monitor::ATTRIBUTES]),
    ("PMIx_Publish", &[publish::PUBLISH_ATTRIBUTES]),
    ("PMIx_Query_info", &[ATTRIBUTES]),
    ("PMIx_Register_event_handler", &[event::REGISTER_ATTRIBUTES]),
    ("PMIx_Unpublish", &[publish::UNPUBLISH_ATTRIBUTES]),
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
];

impl Server {
    pub(super) fn on_query(&mut self, cx: &mut Cx<'_>, from: Asker, request: QueryRequest) {
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
                match key.as_str().and_then(|key| self.answer_to(&from, key, &query.qualifiers)) {
                    Some(answer) => known.push(answer),
                    None if key == keys::QUERY_ATTRIBUTE_SUPPORT => {
                        let mut ours =
                            Layer::Server.answer(&[FUNCTIONS, self.outer.server], &query.qualifiers);
                        ours.extend(self.host_attributes.answer(&query.qualifiers));
                        known.push(Info::new(keys::QUERY_ATTRIBUTE_SUPPORT, DataArray::of_infos(ours)));
                        if self.host_attributes.is_empty() && Layer::Host.is_asked(&query.qualifiers) {
                            unknown.push(key);
                        }
                    }
                    None => {
                        if key == keys::QUERY_NAMESPACES {
                            spare.push(self.namespaces());
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
            return self.answer_infos(cx, &from, status, known);
        }
        let proc = from.proc.clone();
        let op = HostOp::Query { from: proc.clone(), queries: rest };
        self.call_host(cx, Some(&proc), op, Then::AnswerQuery { to: from, order, known, spare });
    }

    /// Adds the host's answers to what was `known`, in the `order` of the questions. `spare`: what the server says instead
    /// of a host that does not answer.
    pub(super) fn on_query_answered(
        &mut self,
        cx: &mut Cx<'_>,
        to: &Asker,
        order: &[Text],
        (known, spare): (Vec<Info>, Vec<Info>),
        reply: HostReply,
    ) {
        let mut info = known;
        let status = match reply {
            HostReply::Infos(status, more)
                if status.is_success() || status == Status::QUERY_PARTIAL_SUCCESS =>
            {
                info.extend(more);
                status
            }
            other => {
                info.extend(spare);
                if info.is_empty() { as_failure(other.status()) } else { Status::QUERY_PARTIAL_SUCCESS }
            }
        };
        support::join(&mut info);
        info.sort_by_key(|info| {
            order.iter().position(|key| *key == *info.key.as_str()).unwrap_or(order.len())
        });
        self.answer_infos(cx, to, status, info);
    }

    /// The jobs that are registered here; the host may know of more.
    fn namespaces(&self) -> Info {
        let names: Vec<&str> = self.jobs.keys().map(|nspace| nspace.as_str()).collect();
        Info::new(keys::QUERY_NAMESPACES, names.join(","))
    }

    /// Whether the node that is meant, if any, is certainly the one of this server.
    fn is_named_by(&self, qualifiers: &[Info]) -> bool {
        let name = qualifiers.find(keys::HOSTNAME).and_then(Value::as_str);
        name.is_none_or(|name| name == self.config.hostname) && qualifiers.find(keys::NODEID).is_none()
    }

    fn answer_to(&self, from: &Asker, key: &str, qualifiers: &[Info]) -> Option<Info> {
        let name = |qualifier: &str| qualifiers.find(qualifier).and_then(Value::as_str);
        Some(match key {
            keys::SERVER_FUNCTIONS => {
                Info::new(keys::SERVER_FUNCTIONS, support::names(&[FUNCTIONS, self.outer.server]))
            }
            keys::HOST_FUNCTIONS if !self.host_attributes.is_empty() => {
                Info::new(keys::HOST_FUNCTIONS, self.host_attributes.names())
            }
            keys::SERVER_URI if self.is_named_by(qualifiers) => {
                let remote = self.config.remote.as_ref().map(|remote| &remote.address);
                let address = remote.unwrap_or(&self.config.address);
                let ProcId { nspace, rank } = &self.config.identity;
                Info::new(keys::SERVER_URI, format!("{nspace}.{rank};{address}"))
            }
            keys::QUERY_NUM_PSETS => {
                Info::new(keys::QUERY_NUM_PSETS, u64::try_from(self.psets.len()).map(Value::Size).ok()?)
            }
            keys::QUERY_PSET_NAMES => {
                let names: Vec<&str> = self.psets.keys().map(String::as_str).collect();
                Info::new(keys::QUERY_PSET_NAMES, names.join(","))
            }
            keys::QUERY_PSET_MEMBERSHIP => {
                let members = self.psets.get(name(keys::PSET_NAME)?)?;
                Info::new(keys::QUERY_PSET_MEMBERSHIP, super::pset::as_array(members))
            }
            keys::QUERY_GROUP_NAMES if self.groups.names().next().is_some() => {
                Info::new(keys::QUERY_GROUP_NAMES, self.groups.names().collect::<Vec<_>>().join(","))
            }
            keys::QUERY_GROUP_MEMBERSHIP => {
                let members = self.groups.members(name(keys::GROUP_ID)?)?;
                Info::new(keys::QUERY_GROUP_MEMBERSHIP, super::pset::as_array(members))
            }
            _ => {
                if let Some(answer) = self.answer_of_node(key, qualifiers) {
                    return Some(answer);
                }
                let nspace = match qualifiers.find(keys::NSPACE) {
                    Some(Value::ProcNspace(nspace)) => nspace.as_str(),
                    Some(value) => value.as_str()?,
                    None => from.proc.nspace.as_str(),
                };
                let value = self.loose_values(self.jobs.get(nspace)?).into_iter().find(|v| v.key == *key)?;
                Info { key: value.key, flags: Default::default(), value: value.value }
            }
        })
    }
}

/// Tells the host which required directives need nothing more from it.
pub(super) fn mark_honoured(op: &mut HostOp) {
    let Some(honoured) = op.function().and_then(|function| support::honoured(FUNCTIONS, function)) else {
        return;
    };
    let honoured: Vec<&str> = honoured.collect();
    for directive in op.directives_mut() {
        if directive.is_required() && honoured.contains(&directive.key.as_str()) {
            directive.flags |= InfoFlags::REQUIRED_PROCESSED;
        }
    }
}
