//! Which types each generation has and how it writes integers.
//!
//! The newest generation is the rule; this file lists what the older ones lack or do differently. Peers of 2.0 and
//! earlier (modules `v20`, `v12`) use entirely different packing rules and are not supported.

use phalanx_spec::DataType;

use super::Generation;

impl Generation {
    /// From 4.0 on integers take as many bytes as their value needs; before, as many as their type.
    pub fn has_flexible_integers(self) -> bool {
        self >= Generation::V4
    }

    /// The type that precedes integers of machine-dependent width. Process ids have it in every generation.
    pub(super) fn said_width(self, of: DataType) -> Option<DataType> {
        match of {
            DataType::PID => Some(DataType::UINT32),
            _ if self.has_flexible_integers() => None,
            DataType::SIZE => Some(DataType::UINT64),
            DataType::INT | DataType::UINT => Some(DataType::INT32),
            _ => None,
        }
    }

    /// Whether this generation knows the data type at all.
    pub fn has(self, data_type: DataType) -> bool {
        match data_type.0 {
            0..=28 | 30..=43 => true,
            // MODEX and INFO_ARRAY: removed in 4.0.
            29 | 44 => self < Generation::V4 || self == Generation::Every,
            // IOF_CHANNEL and ENVAR.
            45..=46 => self >= Generation::V3,
            // COORD .. COMPRESSED_BYTE_OBJECT.
            47..=59 => self >= Generation::V4,
            // PROC_NSPACE, DATA_BUFFER, STOR_*.
            60 | 65..=69 => self >= Generation::V41,
            // PROC_STATS, DISK_STATS, NET_STATS, NODE_STATS: in one generation only.
            61..=64 => self == Generation::V41 || self == Generation::Every,
            // DEVICE, RESBLOCK_DIRECTIVE, RESOURCE_UNIT.
            70..=72 => self >= Generation::V51,
            // NODE_PID, REGEX2.
            73..=74 => self >= Generation::V61,
            _ => false,
        }
    }
}
