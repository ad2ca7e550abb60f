//! `px query`: any query that a PMIx server answers.

use phalanx_spec::attributes;
use pmix::{DataArray, Info, InfoList, Key, Nspace, Query, Status, Value, keys};

use crate::args::nearest::{ending_in, nearest};
use crate::args::tools::QueryArgs;
use crate::failure::Failure;
use crate::render::value;
use crate::tool::{
    self,
    choice::{self, Requirement},
};

pub(crate) fn run(args: &QueryArgs) -> Result<u8, Failure> {
    let queries = match args.list {
        true => vec![Query { keys: vec![keys::QUERY_ATTRIBUTE_SUPPORT.into()], qualifiers: every_layer() }],
        false => args.keys.iter().map(|word| question(word)).collect::<Result<_, _>>()?,
    };
    let tool = match queries.iter().find_map(job) {
        Some(job) => tool::attach_for(&args.server, &job, args.json)?,
        None => tool::attach(&choice::only_one(&args.server, Requirement::Any)?, args.json)?,
    };
    let info = tool.query(&queries).map_err(|error| unanswered(&queries, &error))?;
    if info.is_empty() {
        return Err(Failure::new("the server sent an empty answer"));
    }
    let text = match (args.json, args.list) {
        (true, _) => format!("{}\n", value::object(&info)),
        (false, true) => support(&info),
        (false, false) => info.iter().fold(String::new(), |mut text, info| {
            value::lines(info, 0, &mut text);
            text
        }),
    };
    super::print(&text)?;
    let missing = names(&queries, |key| !info.iter().any(|info| info.key == *key));
    match missing.is_empty() {
        true => Ok(0),
        false => Err(Failure::new(format!("the server has no answer to {}", missing.join(", ")))
            .hint("'px query --list' lists the keys, 'px ps --ranks' the jobs and ranks")),
    }
}

/// The job that a query is about.
fn job(query: &Query) -> Option<Nspace> {
    match query.qualifiers.find(keys::NSPACE)? {
        Value::ProcNspace(nspace) => Some(nspace.clone()),
        value => value.as_str().and_then(|name| Nspace::new(name).ok()),
    }
}

fn names(queries: &[Query], is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let keys = queries.iter().flat_map(|query| &query.keys).filter_map(|key| key.as_str());
    keys.filter(|key| is_meant(key)).map(|key| value::name_of(key).to_owned()).collect()
}

fn unanswered(queries: &[Query], error: &pmix::Error) -> Failure {
    let asked = names(queries, |_| true).join(", ");
    let failure = tool::failed(&format!("the server does not answer {asked}"), error);
    match error.status() {
        Status::ERR_NOT_SUPPORTED => failure.hint("'px query --list' shows what is supported"),
        Status::ERR_NOT_FOUND if queries.iter().all(|query| query.qualifiers.is_empty()) => {
            failure.hint("name the job or rank that you ask about: KEY:NSPACE=JOB:RANK=N")
        }
        Status::ERR_NOT_FOUND => failure.hint("'px ps --ranks' lists the jobs and their ranks"),
        _ => failure,
    }
}

/// `KEY:QUALIFIER=VALUE:...`
fn question(word: &str) -> Result<Query, Failure> {
    let mut parts = word.split(':');
    let key = key_of(parts.next().unwrap_or_default())?;
    let mut qualifiers: Vec<Info> = Vec::new();
    for part in parts {
        match part.split_once('=') {
            Some((name, word)) => {
                let name = key_of(name)?;
                let value = value::parse(name, word).map_err(|why| {
                    Failure::usage(format!("invalid value '{word}' for {}", value::name_of(name)))
                        .because(why)
                })?;
                let key = Key::new(name)
                    .map_err(|why| Failure::usage(format!("'{name}' is not an attribute")).because(why))?;
                qualifiers.push(Info { key, flags: Default::default(), value });
            }
            // A colon inside the value before.
            None => match qualifiers.last_mut() {
                Some(Info { value: Value::String(text), .. }) => {
                    *text = format!("{}:{part}", text.to_string_lossy()).into();
                }
                _ => return Err(Failure::usage(format!("'{part}' is not of the form QUALIFIER=VALUE"))),
            },
        }
    }
    Ok(Query { keys: vec![key.into()], qualifiers })
}

fn key_of(word: &str) -> Result<&str, Failure> {
    value::key_of(word).ok_or_else(|| {
        let failure = Failure::usage(format!("there is no attribute '{word}'"));
        let names: Vec<&str> = attributes().map(|attribute| attribute.name).collect();
        let full = if word.starts_with("PMIX_") { word.to_owned() } else { format!("PMIX_{word}") };
        match nearest(&full, &names).or_else(|| ending_in(word, &names)) {
            Some(nearest) => failure.hint(format!("the nearest attribute is '{nearest}'")),
            None => failure.hint("'px query --list' shows what is supported"),
        }
    })
}

fn every_layer() -> Vec<Info> {
    [keys::CLIENT_ATTRIBUTES, keys::TOOL_ATTRIBUTES, keys::SERVER_ATTRIBUTES, keys::HOST_ATTRIBUTES]
        .map(|key| Info::new(key, true))
        .into()
}

/// Each layer, its functions, and the attributes that they honour.
fn support(info: &[Info]) -> String {
    let layers = info.find(keys::QUERY_ATTRIBUTE_SUPPORT).and_then(Value::as_array);
    let mut text = String::new();
    for layer in layers.into_iter().flat_map(DataArray::infos) {
        value::lines(layer, 0, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_a_key_and_qualifiers() {
        let query = question("QUERY_PROC_TABLE:NSPACE=px-a-7@7:PMIX_RANK=3").expect("a question");
        assert_eq!(query.keys, [keys::QUERY_PROC_TABLE]);
        assert_eq!(
            query.qualifiers,
            [Info::new(keys::NSPACE, "px-a-7@7"), Info::new(keys::RANK, pmix::Rank(3))]
        );
        let with_colon = question("phalanx.ranks:NSPACE=a:b").expect("a question");
        assert_eq!(with_colon.qualifiers, [Info::new(keys::NSPACE, "a:b")]);
    }

    #[test]
    fn a_wrong_question_says_what_is_wrong() {
        let failure = question("PMIX_JOB_SIZ").expect_err("no attribute");
        assert_eq!(failure.hints, ["the nearest attribute is 'PMIX_JOB_SIZE'"]);
        assert_eq!(failure.exit_code, 2);
        assert!(question("JOB_SIZE:RANK").is_err() && question("JOB_SIZE:RANK=x").is_err());
    }
}
