//! A request is issued anew (new Message ID, new token) only where that may be, and not too often
//! (R-USR-09, R-USR-10); a failure says no more about execution than is known.

use coapway_endpoint::Trace;
use coapway_message::Evidence;
use coapway_proxy::Record;

use super::Rules;
use super::exchanges::{End, Exchange, Exchanges};
use super::executions::is_repeatable;
use crate::notation::describe;

#[derive(Debug)]
pub(super) struct Reissue {
    max_attempts: usize,
}

impl Reissue {
    pub(super) const fn new(rules: &Rules) -> Self {
        Self { max_attempts: rules.max_attempts }
    }

    /// A record says which exchanges one request led to.
    pub(super) fn recorded(
        &self,
        record: &Record,
        traces: &[Trace],
        exchanges: &Exchanges,
    ) -> Result<(), String> {
        let of_record: Vec<_> = traces.iter().filter_map(|trace| exchanges.of(trace)).collect();
        let mut attempts = 1;
        for pair in of_record.windows(2) {
            let [before, exchange] = pair else { continue };
            let what = || format!("record {}: {} issued anew", record.id, describe(&exchange.bytes));
            // The next address of a name: nobody was there to execute anything.
            if matches!(before.end, Some((End::Unreachable, 1))) && before.to != exchange.to {
                continue;
            }
            attempts += 1;
            if before.token == exchange.token
                || (before.from, before.message_id) == (exchange.from, exchange.message_id)
            {
                return Err(format!("{} with its old token or Message ID", what()));
            }
            let acknowledged = before.acknowledged.is_some_and(|at| exchange.copies.first() > Some(&at));
            if !before.is_not_executed() && acknowledged {
                return Err(format!("{} after an Acknowledgement", what()));
            }
            let harmless = of_record.iter().take_while(|&&other| !std::ptr::eq(other, *exchange));
            // The origin is known to recognise it, or so the settings say.
            let tagged = exchange.request_tag().is_some() && exchange.request_tag() == before.request_tag();
            if !tagged && !is_repeatable(exchange) && !harmless.copied().all(Exchange::is_not_executed) {
                return Err(format!("{}, which may execute it twice", what()));
            }
        }
        if attempts > self.max_attempts {
            return Err(format!("record {} has {attempts} attempts", record.id));
        }
        evidence(record, &of_record)
    }
}

/// `not-sent` only if no copy left, `not-executed` only if each copy that left was refused.
fn evidence(record: &Record, exchanges: &[&Exchange]) -> Result<(), String> {
    let holds = match record.evidence {
        Some(Evidence::NotSent) => exchanges.iter().all(|exchange| exchange.copies.is_empty()),
        Some(Evidence::NotExecuted) => exchanges.iter().all(|exchange| exchange.is_not_executed()),
        Some(Evidence::OutcomeUnknown) | None => true,
    };
    let evidence = record.evidence.map_or("", Evidence::name);
    if holds { Ok(()) } else { Err(format!("record {} says {evidence}, the wire another thing", record.id)) }
}
