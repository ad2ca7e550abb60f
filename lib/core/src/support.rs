//! Which functions and attributes a layer honours, for queries.
//!
//! Each layer has one table, made of the tables of its verb files, so that it reports exactly what it honours.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{DataType, attribute, keys};
use phalanx_wire::{DataArray, Info, InfoList, Key, Regattr, Text, Value};

/// A function's name and the tables of keys that are honoured there.
pub type Honoured = (&'static str, &'static [&'static [&'static str]]);

/// What the library around a machine honours itself, before the machine gets a call.
#[derive(Debug)]
pub struct OuterSupport {
    pub client: &'static [Honoured],
    /// What tools honour in addition.
    pub tool: &'static [Honoured],
    pub server: &'static [Honoured],
}

/// A machine by itself.
pub const NOTHING: &OuterSupport = &OuterSupport { client: &[], tool: &[], server: &[] };

/// The keys that a function honours; `None` for an unknown function.
pub fn honoured(table: &[Honoured], function: &str) -> Option<impl Iterator<Item = &'static str>> {
    let (_, tables) = table.iter().find(|(name, _)| *name == function)?;
    Some(tables.iter().flat_map(|keys| keys.iter().copied()))
}

/// The layers that a query can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Client,
    Server,
    Tool,
    Host,
}

impl Layer {
    pub const ALL: [Layer; 4] = [Layer::Client, Layer::Server, Layer::Tool, Layer::Host];

    /// The qualifier that asks for attributes.
    pub fn attributes(self) -> &'static str {
        match self {
            Layer::Client => keys::CLIENT_ATTRIBUTES,
            Layer::Server => keys::SERVER_ATTRIBUTES,
            Layer::Tool => keys::TOOL_ATTRIBUTES,
            Layer::Host => keys::HOST_ATTRIBUTES,
        }
    }

    /// The qualifier, or query key, that asks for names of functions.
    pub fn functions(self) -> &'static str {
        match self {
            Layer::Client => keys::CLIENT_FUNCTIONS,
            Layer::Server => keys::SERVER_FUNCTIONS,
            Layer::Tool => keys::TOOL_FUNCTIONS,
            Layer::Host => keys::HOST_FUNCTIONS,
        }
    }

    /// Whether the qualifiers of a query for attribute support concern this layer. Without any they concern all.
    pub fn is_asked(self, qualifiers: &[Info]) -> bool {
        let names = |layer: Layer| [layer.attributes(), layer.functions()];
        let is_given = |layer| names(layer).into_iter().any(|key| wanted(qualifiers, key).is_some());
        is_given(self) || !Layer::ALL.into_iter().any(is_given)
    }

    /// This layer's answer to a query for attribute support; empty when only others are asked. Several tables may have the
    /// same function.
    pub fn answer(self, tables: &[&[Honoured]], qualifiers: &[Info]) -> Vec<Info> {
        let all = joined(tables);
        let table = all.iter().map(|(function, keys)| (*function, keys.iter().copied().collect()));
        self.answer_of(table, qualifiers)
    }

    /// The same for functions with their keys.
    pub fn answer_of<'a>(
        self,
        table: impl Iterator<Item = (&'a str, Vec<&'a str>)> + Clone,
        qualifiers: &[Info],
    ) -> Vec<Info> {
        if !self.is_asked(qualifiers) {
            return Vec::new();
        }
        let (attributes, functions) =
            (wanted(qualifiers, self.attributes()), wanted(qualifiers, self.functions()));
        let mut answer = Vec::new();
        if attributes.is_some() || functions.is_none() {
            let which = attributes.unwrap_or(EVERY);
            let named = table.clone().filter(|(function, _)| which.includes(function));
            answer.push(Info::new(self.attributes(), DataArray::of_infos(named.filter_map(described))));
        }
        if functions.is_some() {
            let names: Vec<&str> = table.map(|(function, _)| function).collect();
            answer.push(Info::new(self.functions(), names.join(",")));
        }
        answer
    }
}

/// The names of the functions, as one list.
pub fn names(tables: &[&[Honoured]]) -> String {
    joined(tables).into_keys().collect::<Vec<_>>().join(",")
}

/// Each function with its keys.
fn joined(tables: &[&[Honoured]]) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut all: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
    for (function, lists) in tables.iter().flat_map(|table| table.iter()) {
        all.entry(function).or_default().extend(lists.iter().flat_map(|list| list.iter()));
    }
    all
}

/// Joins the answers of several layers into one.
pub fn join(answers: &mut Vec<Info>) {
    let mut all: Vec<Info> = Vec::new();
    answers.retain(|info| match info.value.as_array() {
        Some(array) if info.key == keys::QUERY_ATTRIBUTE_SUPPORT => {
            all.extend(array.infos().cloned());
            false
        }
        _ => true,
    });
    if !all.is_empty() {
        answers.push(Info::new(keys::QUERY_ATTRIBUTE_SUPPORT, DataArray::of_infos(all)));
    }
}

/// The functions that a qualifier names.
#[derive(Clone, Copy)]
struct Which<'a>(Option<&'a str>);

const EVERY: Which<'static> = Which(None);

impl Which<'_> {
    fn includes(self, function: &str) -> bool {
        self.0.is_none_or(|list| list.split(',').any(|name| name.trim() == function))
    }
}

/// `None`: the qualifier is absent, or false.
fn wanted<'a>(qualifiers: &'a [Info], key: &str) -> Option<Which<'a>> {
    match qualifiers.find(key)? {
        Value::String(text) => match text.as_str() {
            None | Some("" | "all") => Some(EVERY),
            Some(list) => Some(Which(Some(list))),
        },
        value => value.is_true().then_some(EVERY),
    }
}

/// A function with the descriptions of its attributes.
fn described((function, keys): (&str, Vec<&str>)) -> Option<Info> {
    let items = keys.into_iter().map(|key| {
        let known = attribute(key);
        Value::Regattr(Box::new(Regattr {
            name: Some(known.map_or(key, |attribute| attribute.name).into()),
            key: Some(key.into()),
            data_type: known.map_or(DataType::UNDEF, |attribute| attribute.data_type),
            description: known.iter().map(|attribute| Text::from(attribute.summary)).collect(),
        }))
    });
    let array = DataArray { of: DataType::REGATTR, items: items.collect() };
    Some(Info { key: Key::new(function).ok()?, flags: Default::default(), value: array.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Honoured] = &[("PMIx_A", &[&[keys::TIMEOUT]]), ("PMIx_B", &[])];

    fn functions_in(info: &Info) -> Vec<String> {
        info.value.as_array().unwrap().infos().map(|info| info.key.to_string()).collect()
    }

    #[test]
    fn qualifiers_choose_layers_and_functions() {
        let all = Layer::Host.answer(&[TABLE], &[]);
        assert_eq!((all.len(), functions_in(&all[0])), (1, vec!["PMIx_A".to_owned(), "PMIx_B".to_owned()]));
        assert_eq!(Layer::Host.answer(&[TABLE], &[Info::new(keys::SERVER_ATTRIBUTES, true)]), []);
        let one = Layer::Host.answer(&[TABLE], &[Info::new(keys::HOST_ATTRIBUTES, "PMIx_B")]);
        assert_eq!(functions_in(&one[0]), ["PMIx_B"]);
        let names = Layer::Host.answer(&[TABLE], &[Info::new(keys::HOST_FUNCTIONS, true)]);
        assert_eq!(names, [Info::new(keys::HOST_FUNCTIONS, "PMIx_A,PMIx_B")]);
    }

    #[test]
    fn tables_that_speak_of_one_function_are_joined() {
        const MORE: &[Honoured] = &[("PMIx_A", &[&[keys::TIMEOUT, keys::RANGE]]), ("PMIx_C", &[])];
        let all = Layer::Host.answer(&[TABLE, MORE], &[Info::new(keys::HOST_ATTRIBUTES, true)]);
        assert_eq!(functions_in(&all[0]), ["PMIx_A", "PMIx_B", "PMIx_C"]);
        let first =
            all[0].value.as_array().unwrap().infos().next().unwrap().value.as_array().unwrap().items.len();
        assert_eq!(first, 2);
        assert_eq!(names(&[MORE, TABLE]), "PMIx_A,PMIx_B,PMIx_C");
    }

    #[test]
    fn the_answers_of_several_layers_become_one() {
        let answer = |layer: Layer| {
            Info::new(keys::QUERY_ATTRIBUTE_SUPPORT, DataArray::of_infos(layer.answer(&[TABLE], &[])))
        };
        let mut answers = vec![answer(Layer::Host), Info::new(keys::NSPACE, "x"), answer(Layer::Server)];
        join(&mut answers);
        assert_eq!(answers.len(), 2);
        assert_eq!(functions_in(&answers[1]), [keys::HOST_ATTRIBUTES, keys::SERVER_ATTRIBUTES]);
    }
}
