//! The naive outbox that Postbox is measured against, as a library: benchmarks race it, regression tests show its
//! faults. The benchmark itself is this package's program.

pub mod naive;
