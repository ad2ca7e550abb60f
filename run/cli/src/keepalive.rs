//! The end of whoever has started us: `PMIX_KEEPALIVE_PIPE` names the end of a pipe that it holds open for as long as it lives.

use std::io::ErrorKind;

use tokio::net::unix::pipe::{OpenOptions, Receiver};

/// The pipe, if there is one, until it has been closed.
#[derive(Debug)]
pub(crate) struct Keepalive(Option<Receiver>);

impl Keepalive {
    /// A number that names no pipe of ours keeps nobody alive.
    pub(crate) fn of_environment() -> Keepalive {
        let number = std::env::var("PMIX_KEEPALIVE_PIPE").ok().and_then(|word| word.parse::<u32>().ok());
        // Opened anew, so that its flags are ours alone.
        let open = |fd| OpenOptions::new().open_receiver(format!("/proc/self/fd/{fd}")).ok();
        Keepalive(number.and_then(open))
    }

    /// Ends once, when the other end has been closed; never if there is no pipe.
    pub(crate) async fn lost(&mut self) {
        loop {
            let Some(pipe) = &self.0 else { return std::future::pending().await };
            if pipe.readable().await.is_err() {
                break;
            }
            match pipe.try_read(&mut [0; 64]) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => break,
            }
        }
        self.0 = None;
    }
}
