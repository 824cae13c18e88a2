//! A store of objects in memory that counts its requests and fails one, or all from there on.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use drumlin_base::sync::Mutex;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};

/// What becomes of the chosen request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The store never sees it.
    Lost,
    /// The store does it, and its answer is lost.
    Unanswered,
    /// Neither it nor any after it is seen: the process is gone.
    Stop,
    /// Of a request for bytes, the last is missing in the answer.
    Short,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<String>,
    fault: Option<(usize, Fault)>,
    struck: Option<String>,
}

/// See the module. Clones are the same store.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    pub(crate) memory: Arc<InMemory>,
    state: Arc<Mutex<State>>,
}

impl Faulty {
    pub(crate) fn new(memory: InMemory) -> Self {
        Self {
            memory: Arc::new(memory),
            state: Arc::default(),
        }
    }

    /// What it has, in a store of its own that does as it is told.
    pub(crate) fn fork(&self) -> Self {
        Self::new(self.memory.fork())
    }

    /// Request `index` from now on fails so.
    pub(crate) fn fail(&self, index: usize, fault: Fault) {
        let mut state = self.state.lock();
        let index = state.requests.len() + index;
        state.fault = Some((index, fault));
    }

    /// The request that was struck.
    pub(crate) fn struck(&self) -> Option<String> {
        self.state.lock().struck.clone()
    }

    /// What was asked, as `put meta/1`; and forgets it.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().requests)
    }

    fn judge(&self, op: &str, path: &Path) -> Option<Fault> {
        let mut state = self.state.lock();
        let request = format!("{op} {path}");
        let index = state.requests.len();
        state.requests.push(request.clone());
        let fault = match state.fault {
            Some((at, fault)) if at == index || (fault == Fault::Stop && index > at) => fault,
            _ => return None,
        };
        state.struck.get_or_insert(request);
        Some(fault)
    }
}

fn failed() -> Error {
    Error::Generic {
        store: "faulty",
        source: "the test says no".into(),
    }
}

/// Does `work` as `fault` says.
async fn under<T>(fault: Option<Fault>, work: impl Future<Output = Result<T>>) -> Result<T> {
    match fault {
        Some(Fault::Lost | Fault::Stop) => Err(failed()),
        Some(Fault::Unanswered) => {
            work.await?;
            Err(failed())
        }
        Some(Fault::Short) | None => work.await,
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let fault = self.judge("put", location);
        under(fault, self.memory.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let fault = self.judge("begin", location);
        let begun = self.memory.put_multipart_opts(location, options);
        let upload = under(fault, begun).await?;
        Ok(Box::new(FaultyUpload {
            store: self.clone(),
            location: location.clone(),
            upload,
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let op = match options.head {
            true => "head",
            false => "get",
        };
        let fault = self.judge(op, location);
        let mut found = under(fault, self.memory.get_opts(location, options)).await?;
        if fault == Some(Fault::Short) && op == "get" {
            let GetResult {
                payload,
                meta,
                range,
                attributes,
                extensions,
            } = found;
            let whole = GetResult {
                payload,
                meta: meta.clone(),
                range: range.clone(),
                attributes: attributes.clone(),
                extensions: extensions.clone(),
            };
            let bytes = whole.bytes().await?;
            let short = bytes.slice(..bytes.len().saturating_sub(1));
            let stream = futures_util::stream::once(async move { Ok(short) });
            let payload = GetResultPayload::Stream(stream.boxed());
            found = GetResult {
                payload,
                meta,
                range,
                attributes,
                extensions,
            };
        }
        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let removed = locations.then(move |location| {
            let store = store.clone();
            async move {
                let location = location?;
                let fault = store.judge("delete", &location);
                let one = futures_util::stream::once(async { Ok(location) });
                let mut removed = store.memory.delete_stream(one.boxed());
                under(fault, async move { removed.next().await.unwrap() }).await
            }
        });
        removed.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.memory.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let fault = self.judge("list", prefix.unwrap_or(&Path::default()));
        under(fault, self.memory.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let fault = self.judge("copy", to);
        under(fault, self.memory.copy_opts(from, to, options)).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    store: Faulty,
    location: Path,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let fault = self.store.judge("part", &self.location);
        let part = self.upload.put_part(data);
        Box::pin(under(fault, part))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let fault = self.store.judge("complete", &self.location);
        under(fault, self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        let fault = self.store.judge("abort", &self.location);
        under(fault, self.upload.abort()).await
    }
}
