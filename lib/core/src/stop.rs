//! Which ranks a directive to stop for a debugger names: all, by being true or the wildcard, or those that it lists.

use phalanx_spec::Rank;
use phalanx_wire::Value;

pub(crate) fn names(value: &Value, rank: Rank) -> bool {
    match value {
        Value::Rank(one) => *one == rank || *one == Rank::WILDCARD,
        Value::DataArray(array) => array.items.iter().any(|one| names(one, rank)),
        value => value.is_true(),
    }
}

/// The value for one of the ranks: never a list.
pub(crate) fn as_told_to(value: &Value, rank: Rank) -> Option<Value> {
    let is_for_all = names(value, Rank::WILDCARD);
    match value {
        value if !names(value, rank) => None,
        Value::DataArray(_) if is_for_all => Some(true.into()),
        value if is_for_all => Some(value.clone()),
        _ => Some(rank.into()),
    }
}
