//! SESSION_CTRL (6.1).

use crate::info::Info;

#[derive(Clone, Debug, PartialEq)]
pub struct SessionControl {
    pub session: u32,
    pub directives: Vec<Info>,
}
