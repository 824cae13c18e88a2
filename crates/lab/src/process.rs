//! A process watched from outside, by `/proc`.

use std::collections::BTreeMap;

/// Resources a process used until now. Fields that cannot be read are 0 or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessUse {
    /// Memory in RAM, mapped files included.
    pub resident_bytes: u64,
    /// The part of it that is no file: heap and stacks.
    pub anonymous_bytes: u64,
    /// Bytes read from disks, without those from the page cache.
    pub read_bytes: u64,
    /// Bytes written to disks, or to be written back.
    pub written_bytes: u64,
    /// Processor seconds by name of thread; threads that ended count for the process, as `(ended)`.
    pub cpu_by_thread: BTreeMap<String, f64>,
}

impl ProcessUse {
    /// Of process `id`.
    pub fn of(id: u32) -> Self {
        let read =
            |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
        let status = read("status");
        let kib = |name: &str| colon_field(&status, name).unwrap_or(0) * 1024;
        let io = read("io");
        Self {
            resident_bytes: kib("VmRSS"),
            anonymous_bytes: kib("RssAnon"),
            read_bytes: colon_field(&io, "read_bytes").unwrap_or(0),
            written_bytes: colon_field(&io, "write_bytes").unwrap_or(0),
            cpu_by_thread: cpu_by_thread(id, &read("stat")),
        }
    }

    /// Processor seconds of all threads.
    pub fn cpu_seconds(&self) -> f64 {
        self.cpu_by_thread.values().sum()
    }
}

/// Bytes of all files in the machine's page cache.
pub fn page_cache_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    colon_field(&text, "Cached").unwrap_or(0) * 1024
}

/// The number behind `name:`.
fn colon_field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, rest) = lines.find(|(found, _)| *found == name)?;
    rest.split_whitespace().next()?.parse().ok()
}

fn cpu_by_thread(id: u32, whole: &str) -> BTreeMap<String, f64> {
    let mut by_name = BTreeMap::new();
    let mut living = 0.0;
    let tasks = std::fs::read_dir(format!("/proc/{id}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        if let Some((name, seconds)) = cpu_of(&stat) {
            living += seconds;
            *by_name.entry(name).or_insert(0.0) += seconds;
        }
    }
    // A thread that ended is counted by the process alone.
    let all = cpu_of(whole).map_or(0.0, |(_, seconds)| seconds);
    if all > living {
        by_name.insert("(ended)".to_owned(), all - living);
    }
    by_name
}

/// Name without the number at its end, and processor seconds, of a line of `/proc/.../stat`.
fn cpu_of(stat: &str) -> Option<(String, f64)> {
    // The name is in brackets and may hold anything, brackets included.
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '#'));
    let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
    Some((name.to_owned(), (user + system) / ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_name_may_hold_brackets_and_ends_without_its_number() {
        let stat = "7 (flush (1)-12) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        let (name, seconds) = cpu_of(stat).expect("a line");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(name, "flush (1)");
        assert!((seconds - 200.0 / ticks).abs() < 1e-9);
        assert_eq!(cpu_of("nonsense"), None);
    }

    #[test]
    fn this_process_uses_something() {
        let used = ProcessUse::of(std::process::id());
        assert!(used.resident_bytes >= used.anonymous_bytes && used.anonymous_bytes > 0);
        assert!(!used.cpu_by_thread.is_empty());
        assert_eq!(ProcessUse::of(u32::MAX), ProcessUse::default());
        assert!(page_cache_bytes() > 0);
    }
}
