//! Many requests for a long time, in virtual time: what is asked often, and what is asked after pauses.

mod bench;
mod estimates;
mod hostile;
mod identities;
mod pauses;
mod places;
mod plateau;
mod rates;
mod uploads;
mod waits;
