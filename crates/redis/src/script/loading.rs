//! Libraries are loaded: from a client, from a payload, from the store.

use std::sync::Arc;
use std::time::Duration;

use drumlin_redis_store::Store;
use mlua::Value;

use super::api;
use super::flags::{BAD_NAME, is_name, of_library};
use super::library::{Libraries, Library, LibraryFunction};
use super::limits::LOAD_MS_MAX;
use super::lua_error::caught;
use super::scripts::Scripts;

impl Scripts {
    /// Loads the libraries that a store has.
    ///
    /// # Errors
    /// Of the engine; `Corruption` where a library that was stored cannot be loaded.
    pub(crate) fn load_stored(&mut self, store: &Store) -> drumlin::Result<()> {
        let mut libraries = Libraries::default();
        for (name, code) in store.libraries()? {
            let loaded = self.load_library(&code, &mut libraries, false, true);
            let name = String::from_utf8_lossy(&name).into_owned();
            loaded.map_err(|text| {
                drumlin::Error::corruption(format!("the library {name} cannot be loaded: {text}"))
            })?;
        }
        self.libraries = Arc::new(libraries);
        Ok(())
    }

    /// Loads a library into `libraries`; its name. `is_ours` says that nobody waits for it, and it may take its time.
    ///
    /// # Errors
    /// The error's text.
    pub(crate) fn load_library(
        &mut self,
        text: &[u8],
        libraries: &mut Libraries,
        replaces: bool,
        is_ours: bool,
    ) -> Result<Vec<u8>, String> {
        let head = of_library(text)?;
        if !is_name(&head.name) {
            return Err(BAD_NAME.into());
        }
        if !head.engine.eq_ignore_ascii_case(b"lua") {
            let engine = String::from_utf8_lossy(&head.engine);
            return Err(format!("Engine '{engine}' not found"));
        }
        if libraries.has(&head.name) && !replaces {
            let name = String::from_utf8_lossy(&head.name);
            return Err(format!("Library '{name}' already exists"));
        }
        let code = text.get(head.code_at..).unwrap_or_default();
        let limit = (!is_ours).then_some(Duration::from_millis(LOAD_MS_MAX));
        let functions = self.register(code, limit)?;
        if functions.is_empty() {
            return Err("No functions registered".into());
        }
        libraries.add(Library {
            name: head.name.clone(),
            code: text.to_vec(),
            functions,
        })?;
        Ok(head.name)
    }

    /// Runs the code of a library; the functions that it registered.
    fn register(
        &mut self,
        code: &[u8],
        limit: Option<Duration>,
    ) -> Result<Vec<LibraryFunction>, String> {
        let engine = self.engine()?;
        let compiled = engine.compile_library(code);
        let compiled = compiled.map_err(|error| {
            let text = api::message(&error);
            format!("Error compiling function: {text}")
        })?;
        let failed = |error: mlua::Error| format!("Error registering functions: {error}");
        let until = self.now() + limit.unwrap_or(Duration::from_secs(3_600));
        engine.set_loading(true, Some(until)).map_err(failed)?;
        engine.link.shared.lock().loading = Some(Vec::new());
        let outcome = engine.call(&compiled, [Value::Nil, Value::Nil]);
        let timed_out = engine.link.ending.is_set();
        let functions = engine.link.shared.lock().loading.take();
        engine.set_loading(false, None).map_err(failed)?;
        if timed_out {
            return Err("Error registering functions: ERR FUNCTION LOAD timeout".into());
        }
        if let Err(error) = outcome.map_err(failed)? {
            let error = caught(&engine.lua, error, &engine.link.ending).map_err(failed)?;
            let text = match &error {
                Value::Table(table) => table.raw_get::<Value>("err").map_err(failed)?,
                other => other.clone(),
            };
            let text = engine.lua.coerce_string(text).map_err(failed)?;
            let text = text.map_or_else(Vec::new, |text| text.as_bytes().to_vec());
            let text = String::from_utf8_lossy(&text).into_owned();
            return Err(format!("Error registering functions: {text}"));
        }
        let functions = functions.unwrap_or_default().into_iter();
        Ok(functions
            .map(|function| LibraryFunction {
                name: function.name,
                description: function.description,
                flags: function.flags,
                call: function.call,
            })
            .collect())
    }
}
