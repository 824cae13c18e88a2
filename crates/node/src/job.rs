//! Work for a thread of Node's pool.

use drumlin::Result;
use napi::bindgen_prelude::{AsyncTask, ToNapiValue, TypeName};
use napi::{Env, Task};

use crate::error::thrown;

/// What a job's promise is resolved with, made on Node's loop from what the thread found.
pub(crate) trait Reply: Send + 'static {
    type Js: ToNapiValue + TypeName;

    fn reply(self) -> Self::Js;
}

impl Reply for () {
    type Js = ();

    fn reply(self) {}
}

impl Reply for f64 {
    type Js = Self;

    fn reply(self) -> Self {
        self
    }
}

impl Reply for Vec<u8> {
    type Js = napi::bindgen_prelude::Buffer;

    fn reply(self) -> Self::Js {
        self.into()
    }
}

type Work<T> = Box<dyn FnOnce() -> Result<T> + Send>;

/// A call that is made once, elsewhere.
pub(crate) struct Job<T>(Option<Work<T>>);

/// A promise of what `work` returns.
pub(crate) fn job<T: Reply>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> AsyncTask<Job<T>> {
    AsyncTask::new(Job(Some(Box::new(work))))
}

impl<T: Reply> Task for Job<T> {
    type Output = Result<T>;
    type JsValue = T::Js;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        let work = self.0.take();
        let work = work.ok_or_else(|| napi::Error::from_reason("a job ran twice"))?;
        Ok(work())
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> napi::Result<Self::JsValue> {
        match output {
            Ok(found) => Ok(found.reply()),
            Err(error) => Err(thrown(env, &error)),
        }
    }
}
