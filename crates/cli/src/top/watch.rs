//! The command: one page, or one after the other until it is ended.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use drumlin_fs::Env;
use serde_json::json;

use super::page::{Looks, page};
use super::samples::Samples;
use super::source::Source;
use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Home, and all behind it cleared: the page is drawn over the last one without a flicker.
const HOME: &str = "\x1b[H";
const CLEAR: &str = "\x1b[2J";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Where a live process serves its metrics: a port, `host:port` or an URL; without it the directory of --db, of
    /// which only the files are seen.
    #[arg(value_name = "ADDRESS")]
    address: Option<String>,
    /// Print one page and end, as it is done where the output is no terminal.
    #[arg(long)]
    once: bool,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 1.0)]
    interval: f64,
}

/// Shows what a store does, until CTRL-C.
pub(crate) fn top(place: &Place, wanted: &Top, out: &mut Output) -> Outcome {
    if !(0.1..=3600.0).contains(&wanted.interval) {
        let message = "--interval is from 0.1 to 3600 seconds";
        return Err(Failure::Usage(message.to_owned()));
    }
    let env = Env::system();
    let source = Source::new(wanted.address.as_deref(), place)?;
    let look = || -> Outcome<(Samples, Duration)> {
        let samples = Samples::parse(&source.ask(&env)?);
        match samples.has_engine() {
            true => Ok((samples, env.clock.monotonic())),
            false => Err(Failure::NotFound(format!(
                "{} serves no figures of an engine of ours (drumlin_engine_...)",
                source.name()
            ))),
        }
    };
    let pause = Duration::from_secs_f64(wanted.interval);
    let is_screen = std::io::stdout().is_terminal() && !wanted.once && !out.is_json();
    let mut before: Option<(Samples, Duration)> = None;
    if is_screen {
        out.text(CLEAR)?;
    } else {
        before = Some(look()?);
        env.clock.sleep(pause);
    }
    loop {
        let (now, at) = look()?;
        let looks = Looks {
            before: before
                .as_ref()
                .map(|(samples, then)| (samples, at.saturating_sub(*then).as_secs_f64())),
            now: &now,
            is_directory: source.is_directory(),
        };
        let lines = page(&looks);
        if !is_screen {
            let text = lines.join("\n");
            return out.fact(text, json!({"source": source.name(), "page": lines}));
        }
        let mut text = format!("{HOME}drumlin top  {}{CLEAR_LINE}\n", source.name());
        for line in &lines {
            text.push_str(line);
            text.push_str(CLEAR_LINE);
            text.push('\n');
        }
        text.push_str(CLEAR_BELOW);
        out.text(text)?;
        out.flush()?;
        before = Some((now, at));
        env.clock.sleep(pause);
    }
}
