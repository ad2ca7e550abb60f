//! The model of a poller that does not listen to its engine's bell: an interruption lasts until it is ended.

use super::bell::Bell;

pub(super) struct Poller(Bell);

impl Poller {
    pub(super) fn new() -> Poller {
        Poller(Bell::new().unwrap())
    }

    pub(super) fn interrupt(&self) {
        self.0.ring();
    }

    pub(super) fn wait(&self) {
        self.0.hear();
    }
}
