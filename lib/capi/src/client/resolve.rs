//! Resolve: the processes of a job on a node, and the nodes of a job.

use phalanx_spec::Status;
use pmix::{ClientCall, ClientReturn};

use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::pmix_proc_t;
use crate::names::fixed;
use crate::pointer::Ptr;
use crate::{cmem, from_c, to_c};

exported! {
    /// No node: this one. No namespace: the caller's.
    fn PMIx_Resolve_peers(
        node: Ptr<u8>, nspace: Ptr<u8>, procs: Ptr<Ptr<pmix_proc_t>>, count: Ptr<usize>,
    ) -> Code {
        let instance = instance()?;
        if procs.is_null() || count.is_null() {
            return Err(BAD);
        }
        procs.write(Ptr::NULL);
        count.write(0);
        let nspace = match from_c::nspace(&fixed::<256>(nspace))? {
            none if none.is_none() => instance.client.proc().nspace.clone(),
            given => given,
        };
        let call = ClientCall::ResolvePeers { node: from_c::text(node), nspace };
        match instance.client.perform(call).map_err(|error| error.status())? {
            ClientReturn::Peers(peers) => {
                let peers: Vec<_> = peers?.iter().map(to_c::proc).collect();
                procs.write(cmem::array_of(&peers));
                count.write(peers.len());
                Ok(())
            }
            _ => Err(Status::ERROR),
        }
    }

    /// Comma-separated host names.
    fn PMIx_Resolve_nodes(nspace: Ptr<u8>, nodes: Ptr<Ptr<u8>>) -> Code {
        let instance = instance()?;
        if nodes.is_null() {
            return Err(BAD);
        }
        nodes.write(Ptr::NULL);
        let nspace = match from_c::nspace(&fixed::<256>(nspace))? {
            none if none.is_none() => instance.client.proc().nspace.clone(),
            given => given,
        };
        match instance.client.perform(ClientCall::ResolveNodes { nspace }).map_err(|error| error.status())? {
            ClientReturn::Nodes(names) => {
                nodes.write(cmem::text(names?.join(",").as_bytes()));
                Ok(())
            }
            _ => Err(Status::ERROR),
        }
    }
}
