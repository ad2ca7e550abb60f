//! The fewest bytes that a value of each type can take: counts are checked against this before anything is allocated.
//!
//! Computed for flexible integers. Fixed ones take more, so the bound holds for them too.

use phalanx_spec::DataType;

/// At least 1 for every type but UNDEF.
pub(super) const fn least(data_type: DataType) -> usize {
    match data_type {
        DataType::UNDEF => 0,
        DataType::TIMEVAL
        | DataType::PROC
        | DataType::BUFFER
        | DataType::QUERY
        | DataType::COORD
        | DataType::RESOURCE_UNIT
        | DataType::REGEX2 => 2,
        DataType::KVAL | DataType::ENVAR | DataType::ENDPOINT | DataType::DEVICE => 3,
        DataType::INFO | DataType::REGATTR | DataType::GEOMETRY | DataType::NODE_PID => 4,
        DataType::PDATA | DataType::DEVICE_DIST => 5,
        DataType::APP => 6,
        DataType::PROC_INFO | DataType::NET_STATS => 7,
        DataType::DISK_STATS => 12,
        DataType::NODE_STATS => 16,
        DataType::PROC_STATS => 17,
        _ => 1,
    }
}
