//! One clock for everything that is compared: this machine's, which the database and the relays' logs show too.

use jiff::Timestamp;

/// Microseconds since 1970.
pub(crate) type Micros = i64;

pub(crate) fn now() -> Micros {
    Timestamp::now().as_microsecond()
}
