//! Values of PMIx for people and for programs: indented lines, and JSON.

use phalanx_spec::{attribute, attribute_by_name};
use phalanx_wire::plain;
use pmix::{DataArray, Info, InfoList, ProcId, Value, keys};
use serde_json::{Map, Value as Json, json};

/// `NAME: value`, arrays on lines of their own below.
pub(crate) fn lines(info: &Info, indent: usize, text: &mut String) {
    let gap = " ".repeat(indent);
    let name = plain::line(name_of(info.key.as_str()));
    match &info.value {
        Value::DataArray(array) => {
            text.push_str(&format!("{gap}{name}:\n"));
            if array.items.is_empty() {
                text.push_str(&format!("{gap}  (none)\n"));
            }
            for item in &array.items {
                match item {
                    Value::Info(info) => lines(info, indent + 2, text),
                    Value::Regattr(known) => {
                        let key = known.key.as_ref().map(|key| key.to_string_lossy()).unwrap_or_default();
                        text.push_str(&format!("{gap}  {}\n", plain::line(name_of(&key))));
                    }
                    item => text.push_str(&format!("{gap}  {item}\n")),
                }
            }
        }
        value => text.push_str(&format!("{gap}{name}: {value}\n")),
    }
}

/// One object with all of them; repeated keys become arrays.
pub(crate) fn object<'a>(infos: impl IntoIterator<Item = &'a Info>) -> Json {
    let mut object: Map<String, Json> = Map::new();
    for info in infos {
        let value = json(&info.value);
        match object.get_mut(name_of(info.key.as_str())) {
            None => drop(object.insert(name_of(info.key.as_str()).to_owned(), value)),
            Some(Json::Array(all)) if !matches!(info.value, Value::DataArray(_)) => all.push(value),
            Some(one) => *one = json!([one.take(), value]),
        }
    }
    Json::Object(object)
}

pub(crate) fn json(value: &Value) -> Json {
    match value {
        Value::Undef | Value::NullString | Value::Pointer => Json::Null,
        Value::Bool(v) => json!(v),
        Value::Float(v) => json!(v),
        Value::Double(v) => json!(v),
        Value::Rank(rank) => rank_json(*rank),
        Value::Proc(proc) => proc_json(proc),
        Value::Status(status) => json!(status.name().map_or_else(|| status.0.to_string(), str::to_owned)),
        Value::ProcInfo(line) => json!({
            "nspace": line.proc.nspace.as_str(),
            "rank": rank_json(line.proc.rank),
            "hostname": line.hostname.as_ref().map(|text| text.to_string_lossy()),
            "executable": line.executable.as_ref().map(|text| text.to_string_lossy()),
            "pid": line.pid,
            "state": line.state.to_string(),
        }),
        Value::Regattr(known) => json!({
            "name": known.name.as_ref().map(|text| text.to_string_lossy()),
            "key": known.key.as_ref().map(|text| text.to_string_lossy()),
        }),
        Value::Info(info) => object([&**info]),
        Value::DataArray(array) => array_json(array),
        value => match (value.as_u64(), value.as_i64()) {
            (Some(number), _) => json!(number),
            (None, Some(number)) => json!(number),
            (None, None) => json!(value.to_string()),
        },
    }
}

/// An array of infos with different keys is an object.
fn array_json(array: &DataArray) -> Json {
    let infos: Vec<&Info> = array.infos().collect();
    let is_record = infos.len() == array.items.len()
        && infos.iter().enumerate().all(|(at, info)| infos.iter().skip(at + 1).all(|i| i.key != info.key));
    match is_record && infos.len() > 1 {
        true => object(infos),
        false => Json::Array(array.items.iter().map(json).collect()),
    }
}

pub(crate) fn rank_json(rank: pmix::Rank) -> Json {
    match rank {
        pmix::Rank::WILDCARD => json!("*"),
        rank => json!(rank.0),
    }
}

fn proc_json(proc: &ProcId) -> Json {
    json!({ "nspace": proc.nspace.as_str(), "rank": rank_json(proc.rank) })
}

/// `PMIX_JOB_SIZE` for `pmix.job.size`; an unknown key stays as it is.
pub(crate) fn name_of(key: &str) -> &str {
    attribute(key).map_or(key, |attribute| attribute.name)
}

/// The key that a user means: by its full name, its name without `PMIX_`, or itself.
pub(crate) fn key_of(word: &str) -> Option<&str> {
    let full = attribute_by_name(word).or_else(|| attribute_by_name(&format!("PMIX_{word}")));
    match full {
        Some(attribute) => Some(attribute.key),
        None => word.contains('.').then_some(word),
    }
}

/// The value of one key in an array of infos.
pub(crate) fn find<'a>(array: &'a DataArray, key: &str) -> Option<&'a Value> {
    array.infos().find(|info| info.key == *key).map(|info| &info.value)
}

/// The arrays in an answer: one for each job, process, wait ...
pub(crate) fn records(info: &[Info], key: &str) -> Vec<DataArray> {
    let array = info.find(key).and_then(Value::as_array);
    let records = array.into_iter().flat_map(DataArray::infos);
    records.filter_map(|info| info.value.as_array().cloned()).collect()
}

/// The value of the attribute, in its type.
pub(crate) fn parse(key: &str, word: &str) -> Result<Value, String> {
    use phalanx_spec::DataType;
    let Some(attribute) = attribute(key) else { return Ok(word.into()) };
    let number = || word.parse::<u32>().map_err(|_| format!("'{word}' is not a number"));
    Ok(match attribute.data_type {
        DataType::BOOL => match word {
            "true" | "1" | "yes" => true.into(),
            "false" | "0" | "no" => false.into(),
            // Several attributes are flags in the standard and lists in OpenPMIx.
            _ if attribute.accepts(DataType::STRING) => word.into(),
            _ => return Err(format!("'{word}' is neither true nor false")),
        },
        DataType::PROC_RANK => match word {
            "*" => pmix::Rank::WILDCARD.into(),
            _ => pmix::Rank(number()?).into(),
        },
        DataType::UINT16 => word.parse::<u16>().map_err(|_| format!("'{word}' is not a number"))?.into(),
        DataType::UINT32 => number()?.into(),
        DataType::UINT64 | DataType::SIZE => {
            word.parse::<u64>().map_err(|_| format!("'{word}' is not a number"))?.into()
        }
        DataType::PID => Value::Pid(number()?),
        DataType::INT | DataType::INT32 => {
            word.parse::<i32>().map_err(|_| format!("'{word}' is not a number"))?.into()
        }
        DataType::PROC => {
            let (nspace, rank) = word.rsplit_once(':').ok_or("expected NSPACE:RANK")?;
            let nspace = pmix::Nspace::new(nspace).map_err(|error| error.to_string())?;
            let rank = match rank {
                "*" => pmix::Rank::WILDCARD,
                rank => pmix::Rank(rank.parse().map_err(|_| format!("'{rank}' is not a rank"))?),
            };
            ProcId::new(&nspace, rank).into()
        }
        _ if key == keys::NSPACE => word.into(),
        _ => word.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_all_their_names() {
        assert_eq!(key_of("PMIX_JOB_SIZE"), Some("pmix.job.size"));
        assert_eq!(key_of("JOB_SIZE"), Some("pmix.job.size"));
        assert_eq!(key_of("pmix.job.size"), Some("pmix.job.size"));
        assert_eq!(key_of("phalanx.jobs"), Some("phalanx.jobs"));
        assert_eq!(key_of("JOB_SIZ"), None);
    }

    #[test]
    fn words_become_what_the_attribute_wants() {
        assert_eq!(parse(keys::RANK, "3"), Ok(pmix::Rank(3).into()));
        assert_eq!(parse(keys::RANK, "*"), Ok(pmix::Rank::WILDCARD.into()));
        assert_eq!(parse(keys::NODEID, "2"), Ok(2_u32.into()));
        assert_eq!(parse(keys::NSPACE, "a@1"), Ok("a@1".into()));
        assert_eq!(parse(keys::QUERY_REPORT_AVG, "true"), Ok(true.into()));
        assert!(parse(keys::RANK, "x").is_err() && parse(keys::QUERY_REPORT_AVG, "maybe").is_err());
    }

    #[test]
    fn info_arrays_are_objects_and_alike_lists_are_arrays() {
        let job = |name: &str| {
            let about = [Info::new(keys::NSPACE, name), Info::new(keys::JOB_SIZE, 4_u32)];
            Info::new(keys::JOB_INFO_ARRAY, DataArray::of_infos(about))
        };
        let jobs = Info::new(keys::QUERY_NAMESPACE_INFO, DataArray::of_infos([job("a"), job("b")]));
        let shown = |name: &str| json!({"PMIX_JOB_INFO_ARRAY": {"PMIX_NSPACE": name, "PMIX_JOB_SIZE": 4}});
        assert_eq!(object([&jobs]), json!({"PMIX_QUERY_NAMESPACE_INFO": [shown("a"), shown("b")]}));
        let mut text = String::new();
        lines(&jobs, 0, &mut text);
        assert!(
            text.contains("  PMIX_JOB_INFO_ARRAY:\n    PMIX_NSPACE: a\n    PMIX_JOB_SIZE: 4\n"),
            "{text}"
        );
    }
}
