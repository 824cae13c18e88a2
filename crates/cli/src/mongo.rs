//! `drumlin mongo`: the server of MongoDB's protocol.

use core::net::SocketAddr;
use std::sync::Arc;

use drumlin_fs::Env;
use drumlin_fs::net::{Address, PosixNetwork};
use drumlin_mongo::{Server, ServerOptions, TlsMode, TlsOptions};

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::interrupt::serve_until_signal;
use crate::mongo_args::{self, Mongo};
use crate::output::Output;

/// Serves until a signal ends it.
pub(crate) fn mongo(place: &Place, wanted: &Mongo, out: &mut Output) -> Outcome {
    let env = Env::system();
    let missing = || Failure::Usage("--dir DIR: where is the data to be?".to_owned());
    let dir = wanted
        .dir
        .clone()
        .or_else(|| place.db.clone())
        .ok_or_else(missing)?;
    let options = ServerOptions {
        dir: dir.clone(),
        listen: Address::Tcp(SocketAddr::new(wanted.bind, wanted.port)),
        auth: wanted.auth,
        tls: wanted
            .tls_certificate_key_file
            .clone()
            .map(|file| TlsOptions {
                mode: match wanted.tls_mode {
                    mongo_args::TlsMode::Allow => TlsMode::Allow,
                    mongo_args::TlsMode::Require => TlsMode::Require,
                },
                certificate_key_file: file,
                ca_file: wanted.tls_ca_file.clone(),
                allow_connections_without_certificates: wanted
                    .tls_allow_connections_without_certificates,
            }),
        metrics: wanted
            .metrics_port
            .map(|port| Address::Tcp(SocketAddr::new(wanted.bind, port))),
        memory: wanted.memory,
        env: env.clone(),
        network: Arc::new(PosixNetwork::new()),
    };
    let server = Server::open(options).map_err(Failure::Engine)?;
    let stopper = server.stopper();
    let stop = move || stopper.stop();
    serve_until_signal(&env, stop, || {
        let (dir, address) = (dir.display().to_string(), server.address().to_string());
        let text = format!("Serving {dir} at {address}");
        let metrics = server.metrics_address().map(|it| it.to_string());
        let facts = serde_json::json!({"dir": dir, "address": address, "metrics": metrics});
        out.fact(text, facts)?;
        out.flush()?;
        server.run().map_err(Failure::Engine)
    })
}
