//! The observer of commands. Costs a look at the clock and two counts a command; the rest is done for slow commands and for
//! those that somebody monitors.

use std::collections::BTreeSet;
use std::time::Duration;

use drumlin_fs::Env;

use crate::config::Config;
use crate::facts::Facts;
use crate::observe::latency::Latency;
use crate::observe::rates::Rates;
use crate::observe::slowlog::Slowlog;
use crate::observe::stats::CommandStats;

/// See the module.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) env: Env,
    pub(crate) stats: CommandStats,
    pub(crate) slowlog: Slowlog,
    pub(crate) latency: Latency,
    pub(crate) rates: Rates,
    /// Clients that are told of every command.
    pub(crate) monitors: BTreeSet<u64>,
    /// When the command that runs began, by the monotonic clock: when the one before it ended.
    began: Duration,
    /// Commands are slow from here on, in microseconds; `None` if none is.
    slow_micros: Option<u64>,
    slow_entries: usize,
    /// Work is told of from here on, in milliseconds; 0 for no work.
    pub(crate) spike_millis: u64,
    /// The least of both bounds, in microseconds.
    closer_micros: u64,
    pub(crate) memory_peak: u64,
}

impl Observer {
    /// Of a server that starts now.
    pub(crate) fn new(env: Env) -> Self {
        Self {
            began: env.clock.monotonic(),
            env,
            stats: CommandStats::new(),
            slowlog: Slowlog::default(),
            latency: Latency::default(),
            rates: Rates::default(),
            monitors: BTreeSet::new(),
            slow_micros: None,
            slow_entries: 0,
            spike_millis: 0,
            closer_micros: u64::MAX,
            memory_peak: 0,
        }
    }

    /// Takes over what the configuration says.
    pub(crate) fn configure(&mut self, config: &Config) {
        // A negative number turns the log off.
        self.slow_micros = config.get("slowlog-log-slower-than").parse().ok();
        self.slow_entries = usize::try_from(config.number("slowlog-max-len")).unwrap_or(usize::MAX);
        self.spike_millis = config.number("latency-monitor-threshold");
        self.stats.tracks_times = config.get("latency-tracking") == "yes";
        let spike = match self.spike_millis {
            0 => u64::MAX,
            millis => millis.saturating_mul(1_000),
        };
        self.closer_micros = self.slow_micros.unwrap_or(u64::MAX).min(spike);
    }

    /// Notes that what follows is a command.
    pub(crate) fn begin(&mut self) {
        self.began = self.env.clock.monotonic();
    }

    /// When the present command began.
    pub(crate) fn began(&self) -> Duration {
        self.began
    }

    /// Has the present command begin at an earlier moment: it ran others.
    pub(crate) fn begin_at(&mut self, began: Duration) {
        self.began = began;
    }

    /// The microseconds since the command began. The next one begins now.
    pub(crate) fn lap(&mut self) -> u64 {
        let now = self.env.clock.monotonic();
        let took = now.saturating_sub(self.began);
        self.began = now;
        u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
    }

    /// From how many microseconds on a command is looked at more closely.
    pub(crate) fn closer_micros(&self) -> u64 {
        self.closer_micros
    }

    /// Whether a command that took so long is looked at more closely.
    pub(crate) fn looks_closer(&self, micros: u64) -> bool {
        micros >= self.closer_micros
    }

    /// Takes a command into the slow log and the latencies as far as it belongs there.
    pub(crate) fn took(
        &mut self,
        facts: &Facts,
        args: &[&[u8]],
        (seconds, micros): (u64, u64),
        who: (&str, &[u8]),
    ) {
        use crate::facts::Flags;
        if self.spike_millis > 0 && micros / 1_000 >= self.spike_millis {
            let is_fast = facts.flags.has(Flags::FAST);
            let event = if is_fast { "fast-command" } else { "command" };
            self.latency.add(event, seconds, micros / 1_000);
        }
        if facts.name != "exec" && self.slow_micros.is_some_and(|bound| micros >= bound) {
            let most = self.slow_entries;
            self.slowlog.add(args, (seconds, micros), who, most);
        }
    }

    /// Notes that work of the server took `took` at `seconds`.
    pub(crate) fn worked(&mut self, event: &'static str, seconds: u64, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if self.spike_millis > 0 && millis >= self.spike_millis {
            self.latency.add(event, seconds, millis);
        }
    }
}
