//! The outside of a running node: requests go in, reports come out, both through bounded channels.
//!
//! A report counts as taken when the next one is requested. Only then is credit for further output given, so a reader that stops ends up stopping the
//! ranks' pipes, and nothing piles up in between.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use phalanx_core::{Time, Waiting};
use phalanx_dvm::{Control, JobRequest, Report};
use phalanx_wire::Nspace;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::stdin::StdinSource;

/// Sends requests to a running node. Cheap to clone; belongs to the thread of the node.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    next_request: Rc<Cell<u64>>,
    endings: Rc<Endings>,
}

/// What a node is waiting for.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The node's time, to compare [`Waiting::since`] with.
    pub now: Time,
    pub waiting: Vec<Waiting>,
}

/// The node has stopped and cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Handle {
    /// Submits a job. The returned number is the `request` of the reports about it, until it has a namespace. `stdin` is read as far as the ranks
    /// want it.
    pub async fn submit(&self, job: JobRequest, stdin: StdinSource) -> Result<u64, Gone> {
        let request = self.next_request.get();
        self.next_request.set(request + 1);
        self.send(Request::Submit { request, job: Box::new(job), stdin }).await?;
        Ok(request)
    }

    /// Withdraws jobs that have no namespace yet: those that wait for the DVM are refused.
    pub async fn withdraw(&self) -> Result<(), Gone> {
        self.send(Request::Withdraw).await
    }

    /// Acts on every rank of a job.
    pub async fn control(&self, nspace: &Nspace, action: Control) -> Result<(), Gone> {
        self.send(Request::Control { nspace: nspace.clone(), action }).await
    }

    /// Announces that this process is about to be stopped. The returned future completes when all earlier requests were carried out and the other
    /// daemons were notified, so that they expect our silence. A daemon that takes no data is not waited for.
    pub async fn stand_still(&self) -> Result<impl Future<Output = ()> + use<>, Gone> {
        let (reply, said) = oneshot::channel();
        self.send(Request::StandStill { reply }).await?;
        Ok(async move { drop(said.await) })
    }

    /// It goes on, or is not to be stopped after all.
    pub async fn stand_no_longer(&self) -> Result<(), Gone> {
        self.send(Request::StandNoLonger).await
    }

    /// Ends all jobs, then the node. The reports end when that is done.
    pub async fn shutdown(&self) -> Result<(), Gone> {
        self.send(Request::Shutdown).await
    }

    /// Lets tools find the node at once, instead of after a moment. The error says why they cannot.
    pub async fn announce(&self) -> anyhow::Result<()> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Announce { reply }).await?;
        answer.await.map_err(|_| Gone)?.map_err(anyhow::Error::msg)
    }

    /// Everything that is being waited for at this node, after all earlier requests were carried out.
    pub async fn explain(&self) -> Result<Explanation, Gone> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Explain { reply }).await?;
        answer.await.map_err(|_| Gone)
    }

    /// Waits until a job is being ended, or its processes have ended, even while its reports are not taken.
    pub async fn ending(&self, nspace: &Nspace) {
        while !self.endings.jobs.borrow().contains(nspace) {
            self.endings.news.notified().await;
        }
    }

    async fn send(&self, request: Request) -> Result<(), Gone> {
        self.requests.send(request).await.map_err(|_| Gone)
    }
}

/// The node's reports to its user, in order.
#[derive(Debug)]
pub struct Reports {
    reports: mpsc::Receiver<Report>,
    taken: Rc<Taken>,
    /// Bytes of output in the last report that was returned.
    unacknowledged: usize,
}

impl Reports {
    /// The next report; `None` when the node has stopped. The report returned before counts as taken.
    pub async fn recv(&mut self) -> Option<Report> {
        self.taken.add(std::mem::take(&mut self.unacknowledged));
        let report = self.reports.recv().await?;
        if let Report::Output { data, .. } = &report {
            self.unacknowledged = data.len();
        }
        Some(report)
    }
}

/// What a [`Handle`] sends to the task that owns the node.
#[derive(Debug)]
pub(crate) enum Request {
    Submit { request: u64, job: Box<JobRequest>, stdin: StdinSource },
    Control { nspace: Nspace, action: Control },
    Withdraw,
    StandStill { reply: oneshot::Sender<()> },
    StandNoLonger,
    Shutdown,
    Announce { reply: oneshot::Sender<Result<(), String>> },
    Explain { reply: oneshot::Sender<Explanation> },
}

/// How many bytes of output the user has taken since the owner last looked.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    bytes: Cell<usize>,
    news: Notify,
}

impl Taken {
    fn add(&self, bytes: usize) {
        if bytes > 0 {
            self.bytes.set(self.bytes.get().saturating_add(bytes));
            self.news.notify_one();
        }
    }

    /// Waits until something was taken, and returns how much.
    pub(crate) async fn wait(&self) -> usize {
        loop {
            match self.bytes.take() {
                0 => self.news.notified().await,
                bytes => return bytes,
            }
        }
    }
}

/// Jobs that are about to end. Bypasses the queue of reports.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    jobs: RefCell<BTreeSet<Nspace>>,
    news: Notify,
}

impl Endings {
    pub(crate) fn tell(&self, nspace: &Nspace) {
        self.jobs.borrow_mut().insert(nspace.clone());
        self.news.notify_waiters();
    }

    pub(crate) fn forget(&self, nspace: &Nspace) {
        self.jobs.borrow_mut().remove(nspace);
    }
}

/// The inside of a [`Handle`] and its [`Reports`].
#[derive(Debug)]
pub(crate) struct NodeChannels {
    pub(crate) requests: mpsc::Receiver<Request>,
    pub(crate) reports: mpsc::Sender<Report>,
    pub(crate) taken: Rc<Taken>,
    pub(crate) endings: Rc<Endings>,
}

pub(crate) fn node_channels() -> (Handle, Reports, NodeChannels) {
    let (requests_in, requests) = mpsc::channel(REQUESTS);
    let (reports, reports_out) = mpsc::channel(REPORTS);
    let taken = Rc::new(Taken::default());
    let endings = Rc::new(Endings::default());
    let next_request = Rc::new(Cell::new(1));
    let handle = Handle { requests: requests_in, next_request, endings: endings.clone() };
    let outside = Reports { reports: reports_out, taken: taken.clone(), unacknowledged: 0 };
    (handle, outside, NodeChannels { requests, reports, taken, endings })
}

const REQUESTS: usize = 16;
const REPORTS: usize = 64;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the node has stopped")
    }
}

impl std::error::Error for Gone {}
