//! A lock that is an object.
//!
//! ```text
//! take      put LOCK if there is none; of one that was not renewed for its time, put ours over it if it is still that one
//! hold      put it anew, if it is still ours, four times in its time
//! release   delete it
//! ```
//!
//! Whoever holds it changes nothing once it could not renew it in time, or found another's in its place. Two requests of
//! two holders may still cross at that moment, if a process or its network stood still for the time of the lease.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{Clock, FileLock};
use object_store::path::Path as Location;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};
use parking_lot::Mutex;

use crate::calls::Calls;
use crate::failure::error_of;

const OP: &str = "lock";
/// How often it is tried when others take and release it meanwhile.
const TRIES: u32 = 5;
/// Bytes of a lock that are looked at; it has about a hundred.
const TEXT_BYTES_MAX: u64 = 4096;

/// The lock as its holder knows it, and the thread that renews it.
#[derive(Debug)]
pub(crate) struct Lease {
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    location: Location,
    lease: Duration,
    /// What the object says; no other's is the same.
    text: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    version: UpdateVersion,
    /// When the last request that renewed it was begun.
    renewed: Duration,
    lost: Option<String>,
    released: bool,
}

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) lease: Arc<Lease>,
    calls: Arc<Calls>,
}

impl FileLock for Held {}

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) path: PathBuf,
    pub(crate) location: Location,
    pub(crate) lease: Duration,
    /// A number that no other holder has.
    pub(crate) number: u64,
}

/// Takes the lock; `None` where the user has said that the store has none.
///
/// # Errors
/// `Locked`, with the holder; `Io`.
pub(crate) fn take(
    calls: &Arc<Calls>,
    clock: &Arc<dyn Clock>,
    wanted: Wanted,
) -> Result<Option<Held>> {
    let renewed = clock.monotonic();
    let mut lease = Lease {
        store: Arc::clone(&calls.store),
        clock: Arc::clone(clock),
        text: text_of(&wanted),
        path: wanted.path,
        location: wanted.location,
        lease: wanted.lease,
        state: Mutex::new(State {
            version: UpdateVersion {
                e_tag: None,
                version: None,
            },
            renewed,
            lost: None,
            released: false,
        }),
    };
    let Some(version) = lease.version_taken(calls)? else {
        return Ok(None);
    };
    lease.state.get_mut().version = version;
    let lease = Arc::new(lease);
    let renewing = Arc::clone(&lease);
    calls.repeat(lease.lease / 4, move || {
        let lease = Arc::clone(&renewing);
        async move { lease.renew().await }
    });
    let calls = Arc::clone(calls);
    Ok(Some(Held { lease, calls }))
}

/// The seconds it lasts, and whose it is.
fn text_of(wanted: &Wanted) -> String {
    format!(
        "{} process {} on {}, {:016x}\n",
        wanted.lease.as_secs(),
        std::process::id(),
        drumlin_fs::machine::host_name(),
        wanted.number
    )
}

impl Lease {
    fn version_taken(&self, calls: &Calls) -> Result<Option<UpdateVersion>> {
        let mut mode = PutMode::Create;
        for _ in 0..TRIES {
            let put = put(&self.store, &self.location, &self.text, mode);
            match calls.start(put).answer()? {
                Ok(version) => return Ok(Some(version)),
                Err(StoreError::NotImplemented { .. }) => {
                    tracing::warn!(file = %self.path.display(), "the store has no conditional puts: nothing is locked");
                    return Ok(None);
                }
                Err(error) if is_taken(&error) => {}
                Err(error) => return Err(error_of(OP, &self.path, &error)),
            }
            let found = get(&self.store, &self.location);
            let (meta, text) = match calls.start(found).answer()? {
                Err(StoreError::NotFound { .. }) => {
                    mode = PutMode::Create;
                    continue;
                }
                found => found.map_err(|error| error_of(OP, &self.path, &error))?,
            };
            if text == self.text {
                // The answer to our own put was lost.
                return Ok(Some(version_of(&meta)));
            }
            self.refuse_live(&meta, &text)?;
            mode = PutMode::Update(version_of(&meta));
        }
        Err(self.locked("others take and release it all the time"))
    }

    /// Refuses a lock that somebody may still hold.
    fn refuse_live(&self, meta: &ObjectMeta, text: &str) -> Result<()> {
        let (seconds, holder) = text.trim().split_once(' ').unwrap_or_default();
        let lease = seconds.parse().map_or(self.lease, Duration::from_secs);
        let renewed = u64::try_from(meta.last_modified.timestamp()).unwrap_or(0);
        let age = self
            .clock
            .unix_time()
            .saturating_sub(Duration::from_secs(renewed));
        if age > lease || drumlin_base::bug!("object-lock-of-others-taken") {
            return Ok(());
        }
        let holder = match holder {
            "" => "somebody",
            holder => holder,
        };
        Err(self.locked(&format!(
            "{holder} holds it and renewed it {} s ago; without its holder it ends {} s after that",
            age.as_secs(),
            lease.as_secs()
        )))
    }

    fn locked(&self, why: &str) -> Error {
        Error::new(ErrorKind::Locked, format!("it is locked: {why}")).with_file(&self.path)
    }

    /// Whether it is still held.
    ///
    /// # Errors
    /// `Locked`.
    pub(crate) fn check(&self) -> Result<()> {
        let state = self.state.lock();
        if let Some(why) = &state.lost {
            return Err(self.locked(why));
        }
        // Another's clock may be a little ahead.
        let safe = self.lease - self.lease / 8;
        match self.clock.monotonic().saturating_sub(state.renewed) > safe {
            true => Err(self.locked("it could not be renewed in time, and may be another's now")),
            false => Ok(()),
        }
    }

    /// Renews it; whether there is nothing more to renew.
    async fn renew(&self) -> bool {
        let (began, version) = (self.clock.monotonic(), {
            let state = self.state.lock();
            if state.released || state.lost.is_some() {
                return true;
            }
            state.version.clone()
        });
        let mode = PutMode::Update(version);
        let renewed = match put(&self.store, &self.location, &self.text, mode).await {
            Err(StoreError::NotFound { .. }) => Err("it was removed".to_owned()),
            Err(error) if is_taken(&error) => match get(&self.store, &self.location).await {
                Ok((meta, text)) if text == self.text => Ok(version_of(&meta)),
                Ok((_, text)) => Err(format!("it was taken over: {}", text.trim())),
                Err(_) => return false,
            },
            // It is tried again; once its time is over, `check` says so.
            Err(_) => return false,
            Ok(version) => Ok(version),
        };
        let mut state = self.state.lock();
        match renewed {
            Ok(version) => (state.version, state.renewed) = (version, began),
            Err(why) => state.lost = Some(why),
        }
        state.lost.is_some()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let lease = &self.lease;
        let is_ours = lease.check().is_ok();
        lease.state.lock().released = true;
        if !is_ours {
            return;
        }
        let (store, location) = (Arc::clone(&lease.store), lease.location.clone());
        let removed = async move { store.delete(&location).await };
        if let Err(error) = self.calls.wait("unlock", &lease.path, removed) {
            tracing::warn!(%error, "the lock stays for a while");
        }
    }
}

fn is_taken(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }
    )
}

fn version_of(meta: &ObjectMeta) -> UpdateVersion {
    UpdateVersion {
        e_tag: meta.e_tag.clone(),
        version: meta.version.clone(),
    }
}

fn put(
    store: &Arc<dyn ObjectStore>,
    location: &Location,
    text: &str,
    mode: PutMode,
) -> impl Future<Output = object_store::Result<UpdateVersion>> + Send + use<> {
    let (store, location) = (Arc::clone(store), location.clone());
    let payload = PutPayload::from(text.to_owned());
    async move {
        let put = store
            .put_opts(&location, payload, PutOptions::from(mode))
            .await?;
        Ok(put.into())
    }
}

fn get(
    store: &Arc<dyn ObjectStore>,
    location: &Location,
) -> impl Future<Output = object_store::Result<(ObjectMeta, String)>> + Send + use<> {
    let (store, location) = (Arc::clone(store), location.clone());
    async move {
        let found = store.get(&location).await?;
        let meta = found.meta.clone();
        if meta.size > TEXT_BYTES_MAX {
            return Ok((meta, String::new()));
        }
        let text = found.bytes().await?;
        Ok((meta, String::from_utf8_lossy(&text).into_owned()))
    }
}
