//! `drumlin redis`: the server of Redis's protocol.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind};
use drumlin_fs::net::PosixNetwork;
use drumlin_fs::{Env, append_to_file};
use drumlin_redis::{Config, Loaded, LogSink, Server, ServerOptions, export_rdb, load_data};

use crate::args::{Place, Redis};
use crate::failure::{Failure, Outcome};
use crate::interrupt::serve_until_signal;
use crate::output::{Output, remark};
use crate::progress::Progress;

/// Serves until a signal or SHUTDOWN ends it.
pub(crate) fn redis(place: &Place, wanted: &Redis, out: &mut Output) -> Outcome {
    let env = Env::system();
    let config = configuration(place, wanted, &env)?;
    if let Some(file) = &wanted.load {
        load(&config, &env, file, out)?;
    }
    if let Some(file) = &wanted.export {
        let keys = export_rdb(&config, &env, file).map_err(Failure::Engine)?;
        let text = format!("Wrote {keys} keys to {}", file.display());
        return out.fact(text, serde_json::json!({"keys": keys, "file": file}));
    }
    let dir = config.get("dir").to_owned();
    let network = Arc::new(PosixNetwork::new());
    let log = Arc::new(Log::of(&config));
    let options = ServerOptions {
        config,
        env: env.clone(),
        network,
    };
    let mut server = Server::open(options).map_err(Failure::Engine)?;
    server.log_to(log);
    let stopper = server.stopper();
    let stop = move || stopper.stop();
    serve_until_signal(&env, stop, || {
        for address in server.addresses() {
            let text = format!("Serving {dir} at {address}");
            let address = address.to_string();
            out.fact(text, serde_json::json!({"dir": dir, "address": address}))?;
        }
        out.flush()?;
        server.run().map_err(Failure::Engine)
    })
}

/// The log of the server: the file that the configuration names, or standard error.
#[derive(Debug)]
struct Log {
    file: Option<PathBuf>,
}

impl Log {
    fn of(config: &Config) -> Self {
        let file = Some(config.get("logfile")).filter(|name| !name.is_empty());
        Self {
            file: file.map(PathBuf::from),
        }
    }
}

impl LogSink for Log {
    fn line(&self, line: &str) {
        let Some(file) = &self.file else {
            remark(line.trim_end());
            return;
        };
        if let Err(error) = append_to_file(file, line.as_bytes()) {
            remark(format!(
                "drumlin: {error}; the line was: {}",
                line.trim_end()
            ));
        }
    }
}

fn load(config: &Config, env: &Env, file: &Path, out: &mut Output) -> Outcome {
    let mut progress: Option<Progress> = None;
    let mut before = 0;
    let mut tell = |done: &Loaded, of: u64| {
        let bar = progress.get_or_insert_with(|| Progress::new("loading", Some(of)));
        bar.advance(done.bytes - before);
        before = done.bytes;
    };
    let loaded = load_data(config, env, file, &mut tell);
    if let Some(bar) = progress {
        bar.finish();
    }
    let done = loaded.map_err(Failure::Engine)?;
    if done.failed > 0 {
        let (failed, all) = (done.failed, done.commands);
        remark(format!(
            "drumlin: {failed} of {all} commands were answered with an error"
        ));
    }
    if done.cut > 0 {
        let cut = done.cut;
        remark(format!(
            "drumlin: the last {cut} bytes are no whole command or transaction, and not loaded"
        ));
    }
    let Loaded { keys, expired, .. } = done;
    let mut text = format!("Loaded {keys} keys of {}", file.display());
    for (count, name) in [
        (done.libraries, "libraries of functions"),
        (done.commands, "commands"),
    ] {
        if count > 0 {
            text += &format!(", {count} {name}");
        }
    }
    out.text(format!("{text}; {expired} had expired"))
}

fn configuration(place: &Place, wanted: &Redis, env: &Env) -> Outcome<Config> {
    let mut config = Config::default();
    if let Some(file) = &wanted.file {
        config.read_file(env, file).map_err(Failure::Engine)?;
    }
    let mut set = |name: &str, value: &str| {
        let done = config.set_at_start(name.as_bytes(), value.as_bytes());
        done.map_err(|reason| Failure::Usage(format!("--{name} {value}: {reason}")))
    };
    if let Some(dir) = wanted.dir.as_deref().or(place.db.as_deref()) {
        set("dir", text(dir)?)?;
    }
    if let Some(port) = wanted.port {
        set("port", &port.to_string())?;
    }
    if let Some(address) = &wanted.bind {
        set("bind", address)?;
    }
    for pair in &wanted.set {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Failure::Usage(format!("--set {pair}: write it as NAME=VALUE")))?;
        set(name, value)?;
    }
    Ok(config)
}

fn text(path: &Path) -> Outcome<&str> {
    path.to_str().ok_or_else(|| {
        let message = format!("the directory {} is not UTF-8", path.display());
        Failure::Engine(Error::new(ErrorKind::InvalidArgument, message))
    })
}
