//! `px dvm status`: the nodes of a DVM with their slots and links, and its jobs.

use phalanx_dvm::names;
use pmix::{Query, Tool};

use crate::args::dvm::DvmStatusArgs;
use crate::cmd::ps;
use crate::failure::Failure;
use crate::render::nodes::{self, Node};
use crate::render::ps::{Details, table};
use crate::render::value;
use crate::tool;
use crate::tool::choice::{self, Requirement};

pub(crate) fn status(args: &DvmStatusArgs) -> Result<u8, Failure> {
    let named = choice::only_one(&args.server, Requirement::Dvm)?;
    let tool = tool::attach(&named, args.json)?;
    let nodes = ask_nodes(&tool)?;
    let mut server = ps::server_of(&tool, &named)?;
    server.jobs = ps::all_jobs(&tool)?;
    server.jobs.retain(|job| job.state != "ended");
    let text = match args.json {
        true => {
            let mut about = server.json();
            about["nodes"] = nodes.iter().map(Node::json).collect();
            format!("{about}\n")
        }
        false => {
            let jobs = table(&[server], Details { ranks: false, phases: false });
            format!("{jobs}\n{}", nodes::table(&nodes))
        }
    };
    crate::cmd::print(&text)
}

fn ask_nodes(tool: &Tool) -> Result<Vec<Node>, Failure> {
    let query = Query { keys: vec![names::NODES.into()], qualifiers: Vec::new() };
    let info = tool
        .query(&[query])
        .map_err(|error| tool::failed("cannot ask the server for its nodes", &error).hint(ONLY_OURS))?;
    Ok(value::records(&info, names::NODES).iter().map(Node::from_record).collect())
}

const ONLY_OURS: &str = "only servers of px report their nodes; 'px ps' and 'px query' work with others, too";
