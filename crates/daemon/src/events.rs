//! What the daemon does with a proxy's events: forward records, and lines of its log.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::time::Duration;

use coapway_config::{RecordDestination, RecordSettings};
use coapway_proxy::{Alert, Event, Records};
use coapway_time::Instant;

use crate::clock::Clock;
use crate::on_alert::OnAlert;
use crate::records::{RecordWriter, Target, WallClock};
use crate::sockets::Sockets;
use crate::worker::Reader;

/// How often it is asked whether lines of the log were left out, while some were.
const TELL_LEFT_OUT: Duration = Duration::from_secs(5);

/// Reads the events of one worker.
#[derive(Debug)]
pub(crate) struct Events {
    records: Option<RecordWriter>,
    on_alert: OnAlert,
}

impl Events {
    /// Opens what the settings name.
    pub(crate) fn start(settings: &RecordSettings, clock: &Clock) -> io::Result<Self> {
        let on_alert = OnAlert::default();
        let target = match &settings.destination {
            RecordDestination::Off => return Ok(Self { records: None, on_alert }),
            RecordDestination::StandardOutput => Target::StandardOutput,
            RecordDestination::File(path) => Target::File(path.clone()),
        };
        if let Target::File(path) = &target
            && std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
        {
            tracing::warn!("waiting until somebody reads {}", path.display());
        }
        let wall_clock = WallClock { at_start: clock.zero() };
        let records = Some(RecordWriter::start(target, wall_clock)?);
        Ok(Self { records, on_alert })
    }

    /// Runs this command for alerts from now on.
    pub(crate) fn tell_alerts_to(&mut self, on_alert: OnAlert) {
        self.on_alert = on_alert;
    }

    /// Records go elsewhere from now on. What is on its way to where they went is still written, without
    /// anybody waiting for it.
    pub(crate) fn replace(&mut self, by: Self) {
        if let Some(before) = std::mem::replace(&mut self.records, by.records) {
            // Without a thread it is closed here, which takes a second at the most.
            let _ = std::thread::Builder::new().name("last-records".into()).spawn(move || drop(before));
        }
    }

    /// Opens the file of the records anew, for whoever has moved it away.
    pub(crate) fn reopen(&mut self, now: Instant) {
        if let Some(records) = &mut self.records {
            records.reopen(now);
        }
    }
}

impl Reader for Events {
    fn records(&mut self, records: Records<'_>, now: Instant, sockets: &Sockets) {
        let Some(writer) = &mut self.records else { return };
        for (record, upstream) in records.iter() {
            writer.write(record, upstream, &|socket| sockets.local_addr(socket), now);
        }
    }

    fn read(&mut self, event: Event, now: Instant, _sockets: &Sockets) {
        match (event, &mut self.records) {
            (Event::Refused(refusals), Some(records)) => records.write_refusals(&refusals, now),
            (Event::Alert(alert), _) => {
                tell(&alert);
                self.on_alert.tell(&alert);
            }
            (
                Event::Refused(_)
                | Event::Received { .. }
                | Event::Repeated { .. }
                | Event::Sent { .. }
                | Event::Retransmitted { .. }
                | Event::Acknowledged { .. }
                | Event::EmptyAckSent { .. }
                | Event::Answered { .. }
                | Event::Delivered { .. },
                _,
            ) => {}
        }
    }

    fn flush(&mut self, now: Instant) -> Option<Instant> {
        // Once in a while is enough: a line about lines that were left out is in no hurry.
        let left_out = crate::log::tell_left_out().then(|| now + TELL_LEFT_OUT);
        let due = self.records.as_mut().and_then(|records| records.flush_due(now));
        left_out.into_iter().chain(due).min()
    }
}

fn tell(alert: &Alert) {
    let name = alert.name();
    match alert {
        Alert::RetriesRose { origin, usual, recent, .. } => {
            tracing::warn!(%origin, usual, recent, "{name}: more requests need a second copy, or fail");
        }
        Alert::RetriesCalmed { origin, .. } => tracing::info!(%origin, "{name}"),
        Alert::TimeoutOverCap { origin, quantile, .. } => {
            tracing::warn!(%origin, ?quantile, "{name}: upstream.rto.cap does not hold for this origin");
        }
        Alert::OriginDown { origin, .. } => {
            tracing::warn!(%origin, "{name}: most requests get 5.03 at once until something is heard of it");
        }
        Alert::OriginBack { origin, .. } => tracing::info!(%origin, "{name}"),
        Alert::Loop { client } => {
            tracing::warn!(%client, "{name}: a request came round to this proxy and was ended");
        }
    }
}
