//! What databases count and time, by the numbers of the version of RocksDB that the library is built for.

use drumlin::Times;

use crate::options::OpenOptions;

include!(concat!(env!("OUT_DIR"), "/statistics.rs"));

/// `rocksdb_statistics_histogram_data_t`: times in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistogramData {
    median: f64,
    p95: f64,
    p99: f64,
    average: f64,
    max: f64,
    count: u64,
    sum: u64,
}

/// Statistics that count and do not time, and those that do.
const EXCEPT_TIMERS: i32 = 2;
const EXCEPT_DETAILED_TIMERS: i32 = 3;

impl OpenOptions {
    /// What statistics keep; 0 where they are not enabled.
    pub(crate) fn statistics_level(&self) -> i32 {
        match self.statistics {
            Some(_) => self.statistics_level.unwrap_or(EXCEPT_DETAILED_TIMERS),
            None => 0,
        }
    }

    /// Whether calls are timed.
    pub(crate) fn times_calls(&self) -> bool {
        self.statistics_level() > EXCEPT_TIMERS
    }

    /// The names and counts of all databases that were opened with these options, added up.
    pub(crate) fn tickers(&self) -> Vec<(&'static str, u64)> {
        let mut sums: Vec<(&str, u64)> = Vec::new();
        let Some(opened) = &self.statistics else {
            return sums;
        };
        for db in opened.lock().iter() {
            // One that is closed has none.
            let tickers = db.metrics().map(|metrics| metrics.tickers);
            for (at, (name, count)) in tickers.unwrap_or_default().into_iter().enumerate() {
                match sums.get_mut(at) {
                    Some((_, sum)) => *sum += count,
                    None => sums.push((name, count)),
                }
            }
        }
        sums
    }

    fn times(&self, name: &str) -> Vec<Times> {
        let opened = self.statistics.as_ref().map(|opened| opened.lock().clone());
        let all = opened.into_iter().flatten();
        let metrics = all.filter_map(|db| db.metrics().ok());
        let found = metrics.flat_map(|metrics| metrics.times);
        found
            .filter(|(called, times)| *called == name && times.count() > 0)
            .map(|(_, times)| times)
            .collect()
    }
}

fn name_in(list: &[(u32, &'static str)], number: u32) -> Option<&'static str> {
    let found = list.iter().find(|(known, _)| *known == number);
    found.map(|(_, name)| *name)
}

impl HistogramData {
    /// Of several databases the quantiles are those of the one with the longest.
    fn of(all: &[Times]) -> Self {
        let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
        let count: u64 = all.iter().map(Times::count).sum();
        let sum: f64 = all.iter().map(|times| micros(times.total())).sum();
        let greatest = |share: f64| {
            let each = all.iter().map(|times| micros(times.quantile(share)));
            each.fold(0.0, f64::max)
        };
        Self {
            median: greatest(0.5),
            p95: greatest(0.95),
            p99: greatest(0.99),
            average: if count == 0 { 0.0 } else { sum / count as f64 },
            max: all
                .iter()
                .map(|times| micros(times.longest()))
                .fold(0.0, f64::max),
            count,
            sum: sum as u64,
        }
    }
}

pub(crate) mod calls {
    use super::{HISTOGRAMS, HistogramData, OpenOptions, TICKERS, name_in};

    pub(crate) fn options_enable_statistics(options: &mut OpenOptions) {
        options.statistics.get_or_insert_default();
    }

    pub(crate) fn options_set_statistics_level(options: &mut OpenOptions, level: i32) {
        // As in RocksDB, nothing where there are no statistics.
        if options.statistics.is_some() {
            options.statistics_level = Some(level);
        }
    }

    pub(crate) fn options_get_statistics_level(options: &mut OpenOptions) -> i32 {
        options.statistics_level()
    }

    /// Null where statistics are not enabled.
    pub(crate) fn options_statistics_get_string(options: &mut OpenOptions) -> Option<String> {
        options.statistics.as_ref()?;
        let tickers = options.tickers().into_iter();
        let lines = tickers.map(|(name, count)| format!("{name} COUNT : {count}\n"));
        Some(lines.collect())
    }

    /// 0 for what is not counted here.
    pub(crate) fn options_statistics_get_ticker_count(
        options: &mut OpenOptions,
        ticker: u32,
    ) -> u64 {
        let Some(name) = name_in(TICKERS, ticker) else {
            return 0;
        };
        let tickers = options.tickers();
        let found = tickers.iter().find(|(called, _)| *called == name);
        found.map_or(0, |(_, count)| *count)
    }

    /// All 0 for what is not timed here.
    pub(crate) fn options_statistics_get_histogram_data(
        options: &mut OpenOptions,
        histogram: u32,
        data: &mut HistogramData,
    ) {
        let name = name_in(HISTOGRAMS, histogram);
        let times = name.map(|name| options.times(name)).unwrap_or_default();
        *data = HistogramData::of(&times);
    }

    pub(crate) fn statistics_histogram_data_get_median(data: &mut HistogramData) -> f64 {
        data.median
    }

    pub(crate) fn statistics_histogram_data_get_p95(data: &mut HistogramData) -> f64 {
        data.p95
    }

    pub(crate) fn statistics_histogram_data_get_p99(data: &mut HistogramData) -> f64 {
        data.p99
    }

    pub(crate) fn statistics_histogram_data_get_average(data: &mut HistogramData) -> f64 {
        data.average
    }

    /// Not kept.
    pub(crate) fn statistics_histogram_data_get_std_dev(_data: &mut HistogramData) -> f64 {
        0.0
    }

    pub(crate) fn statistics_histogram_data_get_max(data: &mut HistogramData) -> f64 {
        data.max
    }

    /// Not kept.
    pub(crate) fn statistics_histogram_data_get_min(_data: &mut HistogramData) -> f64 {
        0.0
    }

    pub(crate) fn statistics_histogram_data_get_count(data: &mut HistogramData) -> u64 {
        data.count
    }

    pub(crate) fn statistics_histogram_data_get_sum(data: &mut HistogramData) -> u64 {
        data.sum
    }
}
