//! What the daemon does with a proxy's events: forward records, and lines of its log.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::time::Duration;

use coapway_config::{RecordDestination, RecordSettings};
use coapway_proxy::{Alert, Event, Records, Whose};
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

/// Rounded up, so that what is to come is not said to be over.
const fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_millis().div_ceil(1000) as u64)
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
        Alert::OriginDown { origin, whose: Whose::Everybody, silent_for, probe_in, .. } => {
            tracing::warn!(
                %origin,
                silent_for = ?Duration::from_secs(silent_for.as_secs()),
                next_probe_in = ?whole_seconds(*probe_in),
                "{name}: requests get 5.03 at once, but for one probe at a time, until something is heard of it"
            );
        }
        Alert::OriginDown { origin, whose, silent_for, probe_in, .. } => {
            tracing::warn!(
                %origin,
                client = %whose,
                silent_for = ?Duration::from_secs(silent_for.as_secs()),
                next_probe_in = ?whole_seconds(*probe_in),
                "{name} for one client only: its requests get 5.03 at once, but for one probe at a time, until \
                 something is heard of it; others are served as ever"
            );
        }
        Alert::OriginBack { origin, .. } => tracing::info!(%origin, "{name}"),
        Alert::Loop { client } => {
            tracing::warn!(%client, "{name}: a request came round to this proxy and was ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_line_about_an_origin_that_is_down_says_for_whom() {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).without_time();
        let down = |whose| Alert::OriginDown {
            upstream: coapway_relay::UpstreamId(1),
            origin: ([192, 0, 2, 1], 5683).into(),
            whose,
            silent_for: Duration::from_millis(60_004),
            probe_in: Duration::from_millis(2_500),
        };
        tracing::subscriber::with_default(subscriber.finish(), || {
            tell(&down(Whose::Site(([10, 0, 0, 1], 4000).into())));
            tell(&down(Whose::Everybody));
        });
        let told = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let told = String::from_utf8(told).expect("text");
        let [one, all] = &told.lines().collect::<Vec<_>>()[..] else { panic!("two lines: {told}") };
        assert!(
            one.contains("origin down for one client only: ") && one.contains("others are served as ever"),
            "{one}"
        );
        let fields = " origin=192.0.2.1:5683 client=10.0.0.1 silent_for=60s next_probe_in=3s";
        assert!(one.ends_with(fields), "{one}");
        assert!(all.contains("origin down: requests get 5.03 at once") && !all.contains("client="), "{all}");
    }
}
