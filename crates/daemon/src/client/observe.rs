//! `coapway observe`: a representation and each one that follows it (RFC 7641).
//!
//! ```text
//! register ──▶ notification … notification ──▶ deregister     Ctrl-C, --count, --for
//!    ▲               │  │
//!    └── stale ──────┘  └──▶ ended by the server: an error, or an answer without Observe
//! ```

use std::io;
use std::time::Duration;

use coapway_message::{Content, Method, OptionNumber, OwnedContent};
use coapway_time::Instant;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::arguments::{AskingArguments, ObserveArguments};
use super::conversation::{self, Conversation};
use super::order::Order;
use super::outcome::{Answer, Ended, What, Why};
use super::request::{Request, Role};
use super::{Console, Exit, Trouble, report};

/// Values of Observe in a request (RFC 7641 §2).
const REGISTER: u16 = 0;
const DEREGISTER: u16 = 1;
/// How long a representation is fresh that does not say it, in seconds (RFC 7252 §5.10.5).
const DEFAULT_MAX_AGE: u32 = 60;

/// Observes until it is told to stop, has seen enough, or the server ends it.
///
/// Shape:  `interrupts` is called once there is something to end.
/// Units:  `grace` is how long a representation that is no longer fresh is put up with.
/// Errors: why there is no answer, or none any more.
pub(super) async fn observe(
    arguments: &ObserveArguments,
    console: &mut Console<'_>,
    interrupts: impl FnOnce() -> io::Result<mpsc::Receiver<()>>,
    grace: Duration,
) -> Result<Exit, Trouble> {
    let asking = &arguments.asking;
    if asking.options.iter().any(|option| option.number == OptionNumber::OBSERVE) {
        return Err(Trouble::wrong_use(
            "observe sets Observe itself",
            "get --option Observe=… sends any value",
        ));
    }
    let request = |value| Request::new(Method::Get, asking, Some((OptionNumber::OBSERVE, value)), &[]);
    let (registration, deregistration) = (request(REGISTER)?, request(DEREGISTER)?.content);
    let Request { destination, content: registration } = registration;
    let what = What::Request { confirmable: !asking.non, token: None, content: registration.as_content() };
    let (conversation, answer) = conversation::hold(&destination, what, asking.timeout, console).await?;
    let Answer::Response(first) = answer else { return report::show(&answer, console) };
    let mut interrupts =
        interrupts().map_err(|error| Trouble::failed(format!("cannot wait for signals: {error}"), ""))?;
    // Each notification is a line of its own.
    console.ends_lines = true;
    let now = conversation.now();
    let mut observation = Observation {
        conversation,
        role: destination.role,
        asking,
        registration,
        deregistration,
        order: Order::default(),
        shown: 0,
        enough: arguments.count,
        ends_at: arguments.duration.map(|duration| now + duration),
        grace,
        stale_at: now,
    };
    let shown = match observation.show(&first.as_content(), console) {
        Ok(Next::GoesOn) => observation.go_on(&mut interrupts, console).await,
        shown => shown,
    };
    match shown {
        Ok(Next::Over(exit)) => Ok(exit),
        Ok(Next::GoesOn | Next::Enough) => {
            observation.deregister(&mut interrupts, console).await;
            Ok(Exit::Success)
        }
        Err(trouble) => Err(trouble),
    }
}

/// Ctrl-C and SIGTERM, which from now on no longer end the process.
pub(super) fn interrupts() -> io::Result<mpsc::Receiver<()>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if tell.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(told)
}

/// How long after its time a representation is called stale, so that not all observers register anew at
/// once: 5 to 15 s.
///
/// Source: RFC 7641 §3.3.1.
pub(super) fn grace() -> Duration {
    let mut chance = [0];
    // Without randomness all are equally late.
    let _ = getrandom::fill(&mut chance);
    Duration::from_secs(5) + Duration::from_secs(10) * u32::from(chance[0]) / 255
}

/// What follows from a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoesOn,
    /// No more is wanted; the server is to be told.
    Enough,
    /// The server has ended it.
    Over(Exit),
}

/// An observation that the server has accepted.
#[derive(Debug)]
struct Observation<'a> {
    conversation: Conversation,
    role: Role,
    asking: &'a AskingArguments,
    registration: OwnedContent,
    deregistration: OwnedContent,
    order: Order,
    shown: u64,
    /// How many notifications are enough.
    enough: Option<u64>,
    ends_at: Option<Instant>,
    grace: Duration,
    /// When the newest representation is no longer fresh, and the server may have forgotten us.
    stale_at: Instant,
}

impl Observation<'_> {
    /// Shows notifications until there is a reason not to.
    async fn go_on(
        &mut self,
        interrupts: &mut mpsc::Receiver<()>,
        console: &mut Console<'_>,
    ) -> Result<Next, Trouble> {
        loop {
            let until = self.ends_at.map_or(self.stale_at, |at| at.min(self.stale_at));
            let came = tokio::select! {
                _ = interrupts.recv() => {
                    console.note("ending the observation; once more leaves at once");
                    return Ok(Next::Enough);
                }
                came = self.conversation.notification(Some(until)) => came,
            };
            let next = match came {
                Ok(Some(content)) => self.show(&content.as_content(), console)?,
                Ok(None) if self.ends_at.is_some_and(|at| at <= self.conversation.now()) => Next::Enough,
                Ok(None) => tokio::select! {
                    _ = interrupts.recv() => Next::Enough,
                    next = self.register_anew(console) => next?,
                },
                Err(error) => return Err(self.explain(error)),
            };
            if next != Next::GoesOn {
                return Ok(next);
            }
        }
    }

    /// Shows a notification if it is newer than the last one.
    ///
    /// Source: RFC 7641 §3.2, §3.4, §4.2.
    fn show(&mut self, content: &Content<'_>, console: &mut Console<'_>) -> Result<Next, Trouble> {
        let now = self.conversation.now();
        let sequence = content.options.first(OptionNumber::OBSERVE).filter(|value| value.len() <= 3);
        let sequence = sequence.and_then(coapway_message::options::uint);
        let Some(sequence) = sequence.filter(|_| content.code.is_success()) else {
            if report::show_response(content, console)? == Exit::Success {
                let (what, hint) = self.without_observe();
                console.note(Trouble::failed(what, hint));
            }
            return Ok(Next::Over(Exit::Failed));
        };
        if !self.order.is_newer(sequence, now) {
            console.tell(format_args!("notification {sequence} is not newer than the last one"));
            return Ok(Next::GoesOn);
        }
        let max_age = content.options.uint(OptionNumber::MAX_AGE).unwrap_or(DEFAULT_MAX_AGE);
        self.stale_at = now + Duration::from_secs(max_age.into()) + self.grace;
        console.note(format_args!("notification {sequence}"));
        report::show_response(content, console)?;
        self.shown += 1;
        let is_enough = console.reader_left || self.enough.is_some_and(|enough| enough <= self.shown);
        Ok(if is_enough { Next::Enough } else { Next::GoesOn })
    }

    /// What a server means that answers without Observe.
    fn without_observe(&self) -> (String, &'static str) {
        let peer = self.conversation.remote();
        if self.shown > 0 {
            return (format!("{peer} has ended the observation"), "");
        }
        let hint = match self.role {
            Role::Proxy => "this proxy does not pass observations on, or the resource has none to offer",
            Role::Origin | Role::Endpoint => {
                "not every resource can be observed, and a proxy may not pass it on"
            }
        };
        (format!("{peer} answered without Observe: this is the representation, and none will follow"), hint)
    }

    /// A server that was silent for so long may have lost its list of observers.
    ///
    /// Source: RFC 7641 §3.3.1.
    async fn register_anew(&mut self, console: &mut Console<'_>) -> Result<Next, Trouble> {
        console.note("nothing came while the representation was fresh; registering anew");
        let (confirmable, timeout) = (!self.asking.non, self.asking.timeout);
        let content = self.registration.as_content();
        match self.conversation.ask_again(content, confirmable, timeout, console).await {
            Ok(Answer::Response(content)) => {
                // The answer to a new request is newer, whatever its number.
                self.order = Order::default();
                self.show(&content.as_content(), console)
            }
            Ok(Answer::Alive { .. }) => Ok(Next::GoesOn),
            Err(ended) => {
                let what = What::Request { confirmable, token: None, content };
                Err(report::explain(&ended, self.role, what, timeout))
            }
        }
    }

    /// Ends the observation at the server, which rejecting its next notification would do as well.
    ///
    /// Source: RFC 7641 §3.6.
    async fn deregister(mut self, interrupts: &mut mpsc::Receiver<()>, console: &mut Console<'_>) {
        self.conversation.stop_observing();
        let (confirmable, timeout) = (!self.asking.non, self.asking.timeout);
        let content = self.deregistration.as_content();
        let peer = self.conversation.remote();
        let answer = tokio::select! {
            _ = interrupts.recv() => return,
            answer = self.conversation.ask_again(content, confirmable, timeout, console) => answer,
        };
        match answer {
            Ok(_) => console.tell("deregistered"),
            Err(_) => console.note(format_args!("{peer} did not hear that the observation is over")),
        }
    }

    fn explain(&self, error: io::Error) -> Trouble {
        let peer = self.conversation.remote();
        let ended = Ended { peer, why: Why::Socket(error), copies: 1, acknowledged: true };
        report::explain(&ended, self.role, What::Ping, self.asking.timeout)
    }
}

#[cfg(test)]
mod tests;
