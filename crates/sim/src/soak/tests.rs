//! The long runs, short.

use std::time::Duration;

use super::Report;
use super::flood::{self, Flood};
use super::standing::{self, Standing};

#[track_caller]
fn assert_good(report: &Report) {
    assert!(report.findings.is_empty(), "{report}");
}

#[test]
fn a_flood_to_one_origin_uses_no_message_id_twice() {
    // As fast as one port can be used, until IDs come round for the second time.
    assert_good(&flood::run(Flood { rate: 250, seconds: 280, source_ports: 1 }));
}

#[test]
fn more_than_there_are_message_ids_is_found() {
    let report = flood::run(Flood { rate: 1000, seconds: 70, source_ports: 1 });
    assert!(report.to_string().contains("requests were answered 5.0"), "{report}");
    assert!(!report.to_string().contains("used again within"), "{report}");
}

#[test]
fn outstanding_exchanges_leave_nothing_behind() {
    assert_good(&standing::run(Standing { exchanges: 100, duration: Duration::from_secs(300) }));
}
