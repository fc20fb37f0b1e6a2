//! Samples of several contenders that ran in turn, and what they say.

use serde::Serialize;

/// Something that is measured.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    /// Heading, and key in the JSON.
    pub(crate) name: &'static str,
    pub(crate) decimals: usize,
}

pub(crate) const RATE: Metric = Metric { name: "events/s", decimals: 0 };
pub(crate) const LATENCY_P99: Metric = Metric { name: "commit to confirmation, p99 ms", decimals: 1 };
pub(crate) const LATENCY_MEDIAN: Metric = Metric { name: "commit to confirmation, median ms", decimals: 1 };
pub(crate) const REQUESTS: Metric = Metric { name: "requests/s", decimals: 0 };
pub(crate) const WAL: Metric = Metric { name: "WAL B/event", decimals: 0 };
pub(crate) const PRODUCE_WAL: Metric = Metric { name: "WAL B/event, produce", decimals: 0 };
pub(crate) const SETTLE_WAL: Metric = Metric { name: "WAL B/event, settle", decimals: 0 };
pub(crate) const RELAY_CPU: Metric = Metric { name: "CPU s, relay", decimals: 2 };
pub(crate) const DATABASE_CPU: Metric = Metric { name: "CPU s, database", decimals: 2 };
pub(crate) const RECEIVER_CPU: Metric = Metric { name: "CPU s, receiver", decimals: 2 };
pub(crate) const PEAK_MEMORY: Metric = Metric { name: "peak MB, relay", decimals: 1 };
pub(crate) const EVENTS_PER_SETTLE: Metric = Metric { name: "events/settle", decimals: 0 };
pub(crate) const RETRIES: Metric = Metric { name: "failed tries/event", decimals: 2 };

pub(crate) const CPU_PER_EVENT: Metric = Metric { name: "CPU µs/event, relay + database", decimals: 1 };
pub(crate) const HEARTBEATS: Metric = Metric { name: "heartbeats", decimals: 2 };
pub(crate) const SECONDS: Metric = Metric { name: "seconds", decimals: 2 };
pub(crate) const SHARE: Metric = Metric { name: "least share of the work, %", decimals: 0 };

/// One run of one contender: what was read of each metric, the one that decides first.
pub(crate) type Sample = Vec<(&'static Metric, f64)>;

/// One contender with its samples.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) samples: Vec<Sample>,
}

/// Contenders that ran in turn under the same conditions.
#[derive(Debug)]
pub(crate) struct Race {
    /// Key in the JSON.
    pub(crate) name: String,
    /// What was done, in one line.
    pub(crate) title: String,
    pub(crate) contenders: Vec<Contender>,
    /// Name of the contender that the others are compared with.
    pub(crate) opponent: String,
    /// Conclusions in words.
    pub(crate) notes: Vec<String>,
}

/// Median and extremes of a metric over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Race {
    pub(crate) fn new(name: impl Into<String>, title: impl Into<String>, opponent: &str) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            contenders: Vec::new(),
            opponent: opponent.to_owned(),
            notes: Vec::new(),
        }
    }

    /// Adds a run of the contender `name`.
    pub(crate) fn add(&mut self, name: &str, sample: Sample) {
        match self.contenders.iter_mut().find(|contender| contender.name == name) {
            Some(contender) => contender.samples.push(sample),
            None => self.contenders.push(Contender { name: name.to_owned(), samples: vec![sample] }),
        }
    }

    /// What the contender `name` showed of `metric`, if it did.
    pub(crate) fn summary(&self, name: &str, metric: &Metric) -> Option<Summary> {
        self.contenders.iter().find(|contender| contender.name == name)?.summary(metric)
    }

    /// Median of the contender `name` over that of the opponent.
    pub(crate) fn ratio(&self, name: &str, metric: &Metric) -> Option<f64> {
        let opponent = self.summary(&self.opponent, metric)?.median;
        let own = self.summary(name, metric)?.median;
        (opponent != 0.0).then_some(own / opponent)
    }

    /// Every metric that any contender has, in the order of first mention.
    pub(crate) fn metrics(&self) -> Vec<&'static Metric> {
        let mut metrics: Vec<&'static Metric> = Vec::new();
        for (metric, _) in self.contenders.iter().flat_map(|contender| &contender.samples).flatten() {
            if !metrics.contains(metric) {
                metrics.push(metric);
            }
        }
        metrics
    }
}

impl Contender {
    pub(crate) fn summary(&self, metric: &Metric) -> Option<Summary> {
        let mut values: Vec<f64> = self
            .samples
            .iter()
            .flatten()
            .filter(|(measured, _)| *measured == metric)
            .map(|(_, value)| *value)
            .collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Summary { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_compares_medians_and_ignores_an_outlier() {
        let mut race = Race::new("r", "", "slow");
        for (slow, fast) in [(100.0, 1_000.0), (110.0, 1_200.0), (1.0, 9_999.0)] {
            race.add("slow", vec![(&RATE, slow)]);
            race.add("fast", vec![(&RATE, fast)]);
        }
        assert_eq!(race.summary("slow", &RATE), Some(Summary { median: 100.0, min: 1.0, max: 110.0 }));
        assert_eq!(race.ratio("fast", &RATE), Some(12.0));
        assert_eq!(race.ratio("fast", &WAL), None);
    }
}
