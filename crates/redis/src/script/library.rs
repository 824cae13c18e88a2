//! Libraries of functions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use drumlin_resp::ReplyWriter;
use mlua::Function;

use super::flags::ScriptFlags;

/// A function of a library.
#[derive(Clone, Debug)]
pub(crate) struct LibraryFunction {
    pub(crate) name: Vec<u8>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: ScriptFlags,
    pub(crate) call: Function,
}

/// A library.
#[derive(Clone)]
pub(crate) struct Library {
    pub(crate) name: Vec<u8>,
    /// As it was loaded, the first line too.
    pub(crate) code: Vec<u8>,
    pub(crate) functions: Vec<LibraryFunction>,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Library({})", String::from_utf8_lossy(&self.name))
    }
}

/// Libraries by name. A set never changes: a change makes another one, so it can be taken back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Libraries {
    by_name: BTreeMap<Vec<u8>, Arc<Library>>,
}

impl Libraries {
    /// All of them, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Library> {
        self.by_name.values().map(Arc::as_ref)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// How many functions they have.
    pub(crate) fn function_count(&self) -> usize {
        self.all().map(|library| library.functions.len()).sum()
    }

    /// The function called `name`, in any case.
    pub(crate) fn function(&self, name: &[u8]) -> Option<&LibraryFunction> {
        let mut functions = self.all().flat_map(|library| &library.functions);
        functions.find(|function| function.name.eq_ignore_ascii_case(name))
    }

    /// The engines of scripts in the reply of FUNCTION STATS: its second pair.
    pub(crate) fn write_engines(&self, reply: &mut ReplyWriter) {
        reply.bulk(b"engines");
        reply.map(1);
        reply.bulk(b"LUA");
        reply.map(2);
        reply.bulk(b"libraries_count");
        reply.integer(self.len() as i64);
        reply.bulk(b"functions_count");
        reply.integer(self.function_count() as i64);
    }

    /// Whether there is a library called `name`.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
    }

    /// Takes a library out; whether it was there.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        self.by_name.remove(name).is_some()
    }

    /// Adds a library, in place of one with its name.
    ///
    /// # Errors
    /// The error's text, when another library has one of its functions.
    pub(crate) fn add(&mut self, library: Library) -> Result<(), String> {
        let others = self.all().filter(|other| other.name != library.name);
        let taken: Vec<&LibraryFunction> = others.flat_map(|other| &other.functions).collect();
        let is_taken = |function: &&LibraryFunction| {
            taken
                .iter()
                .any(|other| other.name.eq_ignore_ascii_case(&function.name))
        };
        if let Some(function) = library.functions.iter().find(is_taken) {
            let name = String::from_utf8_lossy(&function.name);
            return Err(format!("Function {name} already exists"));
        }
        self.by_name.insert(library.name.clone(), Arc::new(library));
        Ok(())
    }

    /// Adds all libraries of `others`; if `replaces`, in place of those with their names.
    ///
    /// # Errors
    /// The error's text. Nothing is changed then.
    pub(crate) fn join(&mut self, others: &Self, replaces: bool) -> Result<(), String> {
        let mut joined = self.clone();
        for library in others.all() {
            if joined.has(&library.name) && !replaces {
                let name = String::from_utf8_lossy(&library.name);
                return Err(format!("Library {name} already exists"));
            }
            joined.remove(&library.name);
        }
        for library in others.all() {
            joined.add(library.clone())?;
        }
        *self = joined;
        Ok(())
    }
}
