//! Records that are complete.

use coapway_relay::Upstream;

use crate::record::Record;

/// The records of forwards that were answered since the last ones were told, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Records<'o> {
    complete: &'o [Box<Record>],
    upstreams: &'o [Upstream],
}

impl<'o> Records<'o> {
    pub(crate) const fn new(complete: &'o [Box<Record>], upstreams: &'o [Upstream]) -> Self {
        Self { complete, upstreams }
    }

    /// Each record with the name of its upstream.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'o Record, &'o str)> + use<'o> {
        let upstreams = self.upstreams;
        self.complete.iter().map(move |record| {
            let upstream = upstreams.get(record.upstream.0 as usize);
            (&**record, upstream.map_or("", |upstream| &*upstream.name))
        })
    }
}
