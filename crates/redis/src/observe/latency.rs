//! Spikes of latency, by the kind of work that had them.

use std::collections::{BTreeMap, VecDeque};

/// Samples of a kind of work.
const SAMPLES_MAX: usize = 160;
/// The size of a graph.
const GRAPH_COLUMNS: usize = 80;
const GRAPH_ROWS: usize = 4;

/// A spike: the worst one of a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) seconds: u64,
    pub(crate) millis: u64,
}

/// The spikes of one kind of work, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Series {
    samples: VecDeque<Sample>,
    pub(crate) worst: u64,
}

impl Series {
    /// The samples, the oldest first.
    pub(crate) fn samples(&self) -> impl ExactSizeIterator<Item = &Sample> {
        self.samples.iter()
    }

    /// The newest sample.
    pub(crate) fn newest(&self) -> Option<Sample> {
        self.samples.back().copied()
    }

    /// The mean of the samples.
    fn mean(&self) -> u64 {
        let sum: u64 = self.samples.iter().map(|sample| sample.millis).sum();
        sum / (self.samples.len() as u64).max(1)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    series: BTreeMap<&'static str, Series>,
}

impl Latency {
    /// Notes that work of a kind took `millis` at `seconds`.
    pub(crate) fn add(&mut self, event: &'static str, seconds: u64, millis: u64) {
        let series = self.series.entry(event).or_default();
        series.worst = series.worst.max(millis);
        match series.samples.back_mut() {
            Some(newest) if newest.seconds == seconds => newest.millis = newest.millis.max(millis),
            _ => series.samples.push_back(Sample { seconds, millis }),
        }
        if series.samples.len() > SAMPLES_MAX {
            series.samples.pop_front();
        }
    }

    /// The kinds of work that had spikes.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = (&'static str, &Series)> {
        self.series.iter().map(|(event, series)| (*event, series))
    }

    /// The spikes of one kind, and its name.
    pub(crate) fn of(&self, event: &[u8]) -> Option<(&'static str, &Series)> {
        self.all().find(|(name, _)| name.as_bytes() == event)
    }

    /// Forgets the spikes of a kind; whether there were any.
    pub(crate) fn forget(&mut self, event: &[u8]) -> bool {
        let name = self.of(event).map(|(name, _)| name);
        name.is_some_and(|name| self.series.remove(name).is_some())
    }

    /// Forgets all; of how many kinds.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.series).len()
    }

    /// A report for people.
    pub(crate) fn report(&self, threshold_millis: u64) -> String {
        if threshold_millis == 0 {
            return "Latency is not monitored. CONFIG SET latency-monitor-threshold <milliseconds> \
                    turns it on.\n"
                .to_owned();
        }
        if self.series.is_empty() {
            return format!("Nothing took {threshold_millis} ms or more.\n");
        }
        let mut text = format!("Work that took {threshold_millis} ms or more:\n\n");
        for (at, (event, series)) in self.all().enumerate() {
            text.push_str(&format!(
                "{}. {event}: {} spikes, {} ms in the mean, {} ms at worst.\n",
                at + 1,
                series.samples.len(),
                series.mean(),
                series.worst,
            ));
        }
        text.push_str(
            "\nSLOWLOG GET names the slow commands. INFO stats has cold_commands (blocks that were \
             not in memory)\nand stalled_rounds (writes that waited for compactions): more of \
             maxmemory helps the former.\n",
        );
        text
    }
}

/// A graph of a series as text, as of `now_seconds`.
pub(crate) fn graph(event: &str, series: &Series, now_seconds: u64) -> String {
    let millis = || series.samples.iter().map(|sample| sample.millis);
    let (low, high) = (millis().min().unwrap_or(0), millis().max().unwrap_or(0));
    let mut text = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        series.worst,
        "-".repeat(GRAPH_COLUMNS)
    );
    let samples: Vec<_> = series.samples.iter().collect();
    for line in samples.chunks(GRAPH_COLUMNS) {
        draw(&mut text, line, (low, high));
        let labels: Vec<Vec<u8>> = line
            .iter()
            .map(|sample| ago(now_seconds.saturating_sub(sample.seconds)).into_bytes())
            .collect();
        let rows = labels.iter().map(Vec::len).max().unwrap_or(0);
        text.push('\n');
        for row in 0..rows {
            let letters = labels
                .iter()
                .map(|label| label.get(row).map_or(' ', |letter| char::from(*letter)));
            text.extend(letters);
            text.push('\n');
        }
    }
    text
}

/// Columns of different heights: each character has three steps.
fn draw(text: &mut String, line: &[&Sample], (low, high): (u64, u64)) {
    const STEPS: [char; 3] = ['_', 'o', '#'];
    let steps = (GRAPH_ROWS * STEPS.len()) as u64;
    for row in (0..GRAPH_ROWS).rev() {
        let below = row * STEPS.len();
        for sample in line {
            let height = (sample.millis - low) * (steps - 1) / (high - low).max(1);
            let height = usize::try_from(height).unwrap_or(0);
            let letter = match height.checked_sub(below) {
                None => ' ',
                Some(step) => STEPS.get(step).copied().unwrap_or('|'),
            };
            text.push(letter);
        }
        text.push('\n');
    }
}

fn ago(seconds: u64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::{Latency, SAMPLES_MAX, graph};

    /// Goal: a second has one sample, its worst. Method: three samples in two seconds, then more than are kept.
    #[test]
    fn a_second_has_its_worst_sample() {
        let mut latency = Latency::default();
        latency.add("command", 1, 5);
        latency.add("command", 1, 9);
        latency.add("command", 2, 3);
        let told = |latency: &Latency| {
            let (_, series) = latency.of(b"command").expect("there is one");
            let told: Vec<_> = series.samples().map(|it| (it.seconds, it.millis)).collect();
            (told, series.worst)
        };
        assert_eq!(told(&latency), (vec![(1, 9), (2, 3)], 9));
        let (_, series) = latency.of(b"command").expect("there is one");
        let text = graph("command", series, 62);
        assert!(
            text.contains("high 9 ms, low 3 ms (all time high 9 ms)"),
            "{text}"
        );
        assert!(text.contains("|_\n\n11\nmm\n"), "{text}");
        (3..500).for_each(|second| latency.add("command", second, 1));
        assert_eq!(told(&latency).0.len(), SAMPLES_MAX);
        assert!(latency.forget(b"command") && !latency.forget(b"command"));
    }
}
