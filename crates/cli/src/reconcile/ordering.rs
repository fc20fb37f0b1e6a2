//! Whether a consumer accepted each aggregate's events in their order.

use std::io;

use uuid::Uuid;

use super::sorting::Sorter;

/// Lane, sequence from the last to the first, position (8 bytes each) and event (16).
const RECORD: usize = 40;

/// Takes what both sides have, in any order.
pub(crate) struct Ordering(Sorter<RECORD>);

impl Ordering {
    pub(crate) fn new() -> Self {
        Self(Sorter::new())
    }

    /// # Errors
    /// When the temporary directory is full.
    pub(crate) fn note(&mut self, lane: i64, sequence: i64, position: u64, event_id: Uuid) -> io::Result<()> {
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&lane.to_be_bytes());
        record[8..16].copy_from_slice(&(!sequence).to_be_bytes());
        record[16..24].copy_from_slice(&position.to_be_bytes());
        record[24..].copy_from_slice(event_id.as_bytes());
        self.0.push(record)
    }

    /// Calls `late` with each event that was accepted after one that follows it in its aggregate.
    ///
    /// # Errors
    /// When the temporary directory cannot be read back.
    pub(crate) fn judge(self, mut late: impl FnMut(Uuid)) -> io::Result<()> {
        let (mut lane, mut earliest) = ([0; 8], [u8::MAX; 8]);
        for record in self.0.finish()? {
            let record = record?;
            if record[..8] != lane {
                lane.copy_from_slice(&record[..8]);
                earliest = [u8::MAX; 8];
            }
            // Read from the last sequence back, so that one straggler is one finding, however many overtook it.
            if record[16..24] > earliest[..] {
                late(event_of(&record));
            } else {
                earliest.copy_from_slice(&record[16..24]);
            }
        }
        Ok(())
    }
}

fn event_of(record: &[u8; RECORD]) -> Uuid {
    let mut id = [0; 16];
    id.copy_from_slice(&record[24..]);
    Uuid::from_bytes(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(events: &[(i64, i64, u64)]) -> Vec<u128> {
        let mut ordering = Ordering::new();
        for (index, &(lane, sequence, position)) in events.iter().enumerate() {
            ordering.note(lane, sequence, position, Uuid::from_u128(index as u128)).unwrap();
        }
        let mut late = Vec::new();
        ordering.judge(|event| late.push(event.as_u128())).unwrap();
        late
    }

    #[test]
    fn only_the_order_within_an_aggregate_counts() {
        assert_eq!(judged(&[(1, 2, 20), (1, 1, 10), (2, 1, 30), (2, 2, 40), (3, 1, 5)]), []);
        assert_eq!(judged(&[]), []);
    }

    #[test]
    fn a_straggler_is_one_finding_however_many_overtook_it() {
        assert_eq!(judged(&[(1, 1, 10), (1, 2, 50), (1, 3, 20), (1, 4, 30), (1, 5, 60)]), [1]);
    }
}
