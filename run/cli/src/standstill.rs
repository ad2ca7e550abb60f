//! Ctrl-Z: this process is stopped once, after all daemons were notified that it will be silent; a SIGCONT before that cancels the
//! stop.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use phalanx_node::Handle;

/// Completes when this process may be stopped.
pub(crate) struct MayStop(Pin<Box<dyn Future<Output = ()>>>);

impl MayStop {
    /// When the other daemons know.
    pub(crate) async fn of(handle: &Handle) -> MayStop {
        match handle.stand_still().await {
            Ok(said) => MayStop(Box::pin(said)),
            Err(_) => MayStop::at_once(),
        }
    }

    pub(crate) fn at_once() -> MayStop {
        MayStop(Box::pin(std::future::ready(())))
    }

    pub(crate) fn after(time: Duration) -> MayStop {
        MayStop(Box::pin(tokio::time::sleep(time)))
    }
}

/// Whether this process runs.
#[derive(Default)]
pub(crate) enum Standstill {
    #[default]
    Runs,
    /// It is about to be stopped.
    Asked(MayStop),
    /// It was stopped, and does not know yet that it goes on.
    Stood,
}

impl Standstill {
    pub(crate) fn is_asked(&self) -> bool {
        matches!(self, Standstill::Asked(_))
    }

    /// It is to be stopped then; what was waited for before counts no more.
    pub(crate) fn ask(&mut self, may_stop: MayStop) {
        *self = Standstill::Asked(may_stop);
    }

    /// Until this process may be stopped, if it is to be.
    pub(crate) async fn may_stop(&mut self) {
        match self {
            Standstill::Asked(MayStop(wait)) => wait.as_mut().await,
            _ => std::future::pending().await,
        }
    }

    /// Stops this process by `stop`, which returns when it goes on.
    pub(crate) fn stop(&mut self, stop: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        *self = Standstill::Stood;
        stop()
    }

    /// It goes on. Whether it was stopped, or about to be.
    pub(crate) fn go_on(&mut self) -> bool {
        !matches!(std::mem::take(self), Standstill::Runs)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Stops where that may be. How often it was stopped so far.
    fn turn(standstill: &mut Standstill, stops: &Cell<u32>) -> u32 {
        let ready = std::pin::pin!(standstill.may_stop()).poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(()) = ready {
            let stop = || {
                stops.set(stops.get() + 1);
                Ok(())
            };
            standstill.stop(stop).expect("it stops");
        }
        stops.get()
    }

    fn said_when(said: &std::rc::Rc<Cell<bool>>) -> MayStop {
        let said = said.clone();
        MayStop(Box::pin(std::future::poll_fn(
            move |_| if said.get() { Poll::Ready(()) } else { Poll::Pending },
        )))
    }

    #[test]
    fn it_stops_once_when_it_may() {
        let (mut standstill, stops) = (Standstill::default(), Cell::new(0));
        assert_eq!(turn(&mut standstill, &stops), 0);
        let said = std::rc::Rc::default();
        standstill.ask(said_when(&said));
        assert_eq!(turn(&mut standstill, &stops), 0);
        // Asked again meanwhile, because there are more daemons to notify.
        standstill.ask(said_when(&said));
        said.set(true);
        assert_eq!([turn(&mut standstill, &stops), turn(&mut standstill, &stops)], [1, 1]);
        assert_eq!([standstill.go_on(), standstill.go_on()], [true, false]);
        assert_eq!(turn(&mut standstill, &stops), 1);
    }

    #[test]
    fn going_on_takes_it_back() {
        let (mut standstill, stops) = (Standstill::default(), Cell::new(0));
        let said = std::rc::Rc::default();
        standstill.ask(said_when(&said));
        assert!(standstill.go_on());
        said.set(true);
        assert_eq!((turn(&mut standstill, &stops), standstill.is_asked()), (0, false));
        standstill.ask(MayStop::at_once());
        assert_eq!(turn(&mut standstill, &stops), 1);
    }
}
