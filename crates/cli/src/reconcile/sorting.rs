//! Sorting more records than memory holds: sorted runs on disk, merged while they are read.
//!
//! A record is an array of bytes whose order as bytes is the order wanted (numbers are big-endian).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Memory for the run that is being filled.
pub(crate) const RUN_BYTES: usize = 32 * 1024 * 1024;

/// Runs that are merged at once; more are first merged into one. Each has a buffer of [`BUFFER_BYTES`] then.
const MAX_RUNS: usize = 64;

const BUFFER_BYTES: usize = 64 * 1024;

/// Takes records in any order.
pub(crate) struct Sorter<const N: usize> {
    run: Vec<[u8; N]>,
    run_records: usize,
    runs: Vec<File>,
}

impl<const N: usize> Sorter<N> {
    pub(crate) fn new() -> Self {
        Self::with_run_of(RUN_BYTES / N)
    }

    fn with_run_of(records: usize) -> Self {
        Self { run: Vec::with_capacity(records), run_records: records, runs: Vec::new() }
    }

    /// # Errors
    /// When the temporary directory cannot take a run.
    pub(crate) fn push(&mut self, record: [u8; N]) -> io::Result<()> {
        if self.run.len() == self.run_records {
            self.spill()?;
        }
        self.run.push(record);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.run.sort_unstable();
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile()?);
        for record in self.run.drain(..) {
            file.write_all(&record)?;
        }
        self.runs.push(file.into_inner().map_err(io::IntoInnerError::into_error)?);
        if self.runs.len() == MAX_RUNS {
            self.merge_runs()?;
        }
        Ok(())
    }

    fn merge_runs(&mut self) -> io::Result<()> {
        let mut merged = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile()?);
        for record in Sorted::<N>::over(Vec::new(), std::mem::take(&mut self.runs))? {
            merged.write_all(&record?)?;
        }
        self.runs.push(merged.into_inner().map_err(io::IntoInnerError::into_error)?);
        Ok(())
    }

    /// All records in order. The memory of the run is free by the time the first one is read, unless all fit into it.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn finish(mut self) -> io::Result<Sorted<N>> {
        if !self.runs.is_empty() && !self.run.is_empty() {
            self.spill()?;
        }
        self.run.sort_unstable();
        Sorted::over(self.run, self.runs)
    }
}

/// Records in order.
pub(crate) struct Sorted<const N: usize> {
    memory: std::vec::IntoIter<[u8; N]>,
    files: Vec<BufReader<File>>,
    /// The next record of each file.
    heads: BinaryHeap<Reverse<([u8; N], usize)>>,
}

impl<const N: usize> Sorted<N> {
    /// Either `memory` or `files` is empty.
    fn over(memory: Vec<[u8; N]>, files: Vec<File>) -> io::Result<Self> {
        let mut sorted = Self {
            memory: memory.into_iter(),
            files: Vec::new(),
            heads: BinaryHeap::with_capacity(files.len()),
        };
        for mut file in files {
            file.seek(SeekFrom::Start(0))?;
            sorted.files.push(BufReader::with_capacity(BUFFER_BYTES, file));
            sorted.refill(sorted.files.len() - 1)?;
        }
        Ok(sorted)
    }

    fn refill(&mut self, index: usize) -> io::Result<()> {
        let mut record = [0; N];
        match self.files[index].read_exact(&mut record) {
            Ok(()) => self.heads.push(Reverse((record, index))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl<const N: usize> Iterator for Sorted<N> {
    type Item = io::Result<[u8; N]>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(Reverse((record, index))) = self.heads.pop() else {
            return self.memory.next().map(Ok);
        };
        Some(self.refill(index).map(|()| record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` different records in an order that is far from theirs.
    fn shuffled(count: u64) -> impl Iterator<Item = [u8; 8]> {
        (0..count).map(move |n| (n * 7_919 % count).to_be_bytes())
    }

    #[test]
    fn records_come_out_in_order_however_many_runs_it_takes() {
        // 7,919 is a prime, so each number comes once. 10 per run: none, one, several, and more than are merged at once.
        for count in [0, 1, 9, 10, 11, 25, 1_000] {
            let mut sorter = Sorter::with_run_of(10);
            for record in shuffled(count) {
                sorter.push(record).unwrap();
            }
            let sorted: Vec<[u8; 8]> = sorter.finish().unwrap().map(Result::unwrap).collect();
            let expected: Vec<[u8; 8]> = (0..count).map(u64::to_be_bytes).collect();
            assert_eq!(sorted, expected, "{count}");
        }
    }

    #[test]
    fn repeated_records_all_come_out() {
        let mut sorter = Sorter::with_run_of(2);
        for byte in [3, 1, 3, 2, 3] {
            sorter.push([byte]).unwrap();
        }
        let sorted: Vec<[u8; 1]> = sorter.finish().unwrap().map(Result::unwrap).collect();
        assert_eq!(sorted, [[1], [2], [3], [3], [3]]);
    }
}
