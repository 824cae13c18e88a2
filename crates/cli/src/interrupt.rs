//! Signals. CTRL-C cancels long work, which says what is done; a second one ends the process at once. What only a signal ends, a
//! server or a command that follows, is asked to end by SIGTERM, too.

use std::sync::{Arc, OnceLock};

use drumlin::CancelToken;
use drumlin_base::sync::Mutex;
use drumlin_fs::Env;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::failure::{Failure, Outcome};
use crate::output::remark;

/// The exit code of a command that a signal ended, as of shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// The work that the next CTRL-C cancels.
type Work = Arc<Mutex<Option<CancelToken>>>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// The thread that waits for signals, and what it works on.
struct Listener {
    work: Work,
    signals: Handle,
}

/// Work that CTRL-C cancels, until it is dropped.
#[derive(Debug)]
pub(crate) struct Interrupt {
    work: Work,
    pub(crate) token: CancelToken,
}

impl Interrupt {
    /// From now on CTRL-C cancels the token.
    pub(crate) fn new() -> Outcome<Self> {
        Self::on(listener()?)
    }

    /// The same for SIGTERM, and for the work of a command that nothing else ends.
    pub(crate) fn of_following() -> Outcome<Self> {
        let listener = listener()?;
        if !drumlin_base::bug!("sigterm-cuts-a-batch") {
            listener.signals.add_signal(SIGTERM).map_err(Failure::Io)?;
        }
        Self::on(listener)
    }

    fn on(listener: &Listener) -> Outcome<Self> {
        let token = CancelToken::new();
        *listener.work.lock() = Some(token.clone());
        let work = Arc::clone(&listener.work);
        Ok(Self { work, token })
    }

    /// The failure of a command that was cancelled, after it said what it did.
    pub(crate) fn check(&self, what_is_done: &str) -> Outcome {
        match self.token.is_cancelled() {
            true => Err(Failure::Interrupted(what_is_done.to_owned())),
            false => Ok(()),
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        *self.work.lock() = None;
    }
}

/// Starts the thread that waits for signals, where it is not there yet. It lives as long as the process.
fn listener() -> Outcome<&'static Listener> {
    if let Some(listener) = LISTENER.get() {
        return Ok(listener);
    }
    let work = Work::default();
    let mut signals = Signals::new([SIGINT]).map_err(Failure::Io)?;
    let handle = signals.handle();
    let heard = Arc::clone(&work);
    let body = move || {
        for _ in signals.forever() {
            let token = heard.lock().clone();
            match token {
                Some(token) if !token.is_cancelled() => {
                    remark("drumlin: ending; once more ends at once");
                    token.cancel();
                }
                _ => std::process::exit(i32::from(INTERRUPTED)),
            }
        }
    };
    let thread = Env::system().spawner.spawn("signals", Box::new(body))?;
    // Nobody waits for it.
    drop(thread);
    Ok(LISTENER.get_or_init(|| Listener {
        work,
        signals: handle,
    }))
}

/// Runs a server until SIGTERM or SIGINT has it asked to `stop`, or it ends by itself. The signals are awaited before `serve`
/// tells anybody that it serves.
pub(crate) fn serve_until_signal(
    env: &Env,
    stop: impl Fn() -> drumlin::Result<()> + Send + 'static,
    serve: impl FnOnce() -> Outcome,
) -> Outcome {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(Failure::Io)?;
    let handle = signals.handle();
    let listen = move || {
        if signals.forever().next().is_some() && stop().is_err() {
            remark("drumlin: the server could not be woken; it ends within a tenth of a second");
        }
    };
    let thread = env.spawner.spawn("signals", Box::new(listen))?;
    let ended = serve();
    handle.close();
    thread.join()?;
    ended
}
