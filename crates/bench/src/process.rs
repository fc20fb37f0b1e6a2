//! What processes cost, from `/proc` (proc(5)).

use std::collections::HashMap;
use std::fs;

use crate::Outcome;

/// Ticks per second in which the kernel reports processor time to programs: 100 on every architecture (time(7)).
const TICKS_PER_SECOND: f64 = 100.0;

struct Stat {
    parent: u32,
    /// User and system time of the process and of its children that ended and were waited for, in ticks.
    ticks: u64,
}

/// Processor seconds that process `root` and everything below it have used so far, ended children included.
pub(crate) fn tree_cpu_seconds(root: u32) -> Outcome<f64> {
    let mut stats = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process may end between being listed and being read.
        if let Some(stat) = stat(&pid.to_string()) {
            stats.insert(pid, stat);
        }
    }
    let belongs = |mut pid: u32| {
        while pid != root {
            match stats.get(&pid) {
                Some(stat) if stat.parent != 0 => pid = stat.parent,
                _ => return false,
            }
        }
        true
    };
    let ticks: u64 = stats.iter().filter(|(pid, _)| belongs(**pid)).map(|(_, stat)| stat.ticks).sum();
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

/// Processor seconds that this process has used so far.
pub(crate) fn own_cpu_seconds() -> f64 {
    stat("self").map_or(0.0, |stat| stat.ticks as f64 / TICKS_PER_SECOND)
}

/// Most memory that this process has had resident so far, in MB (10⁶ bytes).
pub(crate) fn own_peak_megabytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.unwrap_or_default() * 1_024.0 / 1e6
}

fn stat(pid: &str) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields after it are numbers. The first of them is number 3.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat { parent: u32::try_from(field(4)?).ok()?, ticks: (14..=17).map(field).sum::<Option<u64>>()? })
}
