//! What fuzzers look at.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::budget::MemoryBudget;
use drumlin_fs::Clock;
use drumlin_resp::{OwnedArgs, Protocol, ReplyWriter};

use crate::acl::{self, User};
use crate::config_names::ENTRIES;
use crate::script::reply;
use crate::script::scripts::Scripts;
use crate::{Config, catalog, config_rewrite, glob};

/// The users of an ACL file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersFile(Vec<User>);

impl UsersFile {
    /// Of a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        acl::parse(text, "the file", false).map(Self)
    }

    /// The text that is written for them.
    pub fn text(&self) -> Vec<u8> {
        acl::write(self.0.iter())
    }

    /// What each user lacks for a call, from the name of the command on; nothing for a command that is not there.
    pub fn lacks(&self, call: &[&[u8]]) -> Vec<String> {
        let args: OwnedArgs = call.iter().copied().collect();
        let found = call.first().and_then(|name| catalog::find(name));
        let Some(entry) = found.and_then(|entry| catalog::lookup(entry, args.args())) else {
            return Vec::new();
        };
        let users = self.0.iter();
        users
            .map(|user| format!("{:?}", user.lacks(entry, args.args())))
            .collect()
    }
}

/// A configuration file.
#[derive(Clone, Debug)]
pub struct ConfigFile(Config);

impl ConfigFile {
    /// Of a text.
    ///
    /// # Errors
    /// `InvalidArgument` that names the line.
    pub fn parse(text: &[u8]) -> drumlin_base::Result<Self> {
        let mut config = Config::default();
        config.read_text(text, Path::new("redis.conf"))?;
        Ok(Self(config))
    }

    /// The text that CONFIG REWRITE makes of `old`.
    pub fn rewritten(&self, old: &str) -> String {
        config_rewrite::rewritten(&self.0, &[], old)
    }

    /// Each name, with its value.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let names = ENTRIES.iter().map(|entry| entry.name);
        names
            .map(|name| (name, self.0.get(name).to_owned()))
            .collect()
    }
}

/// Whether `text` matches the pattern of KEYS, SCAN and others.
pub fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    glob::matches(pattern, text)
}

/// The Lua state of a server whose scripts cannot call it.
pub struct ScriptState(Scripts);

impl ScriptState {
    /// One that takes so much memory at most. Its time is that of `clock`.
    pub fn new(clock: Arc<dyn Clock>, memory_bytes: usize) -> Self {
        let account = MemoryBudget::new(memory_bytes).account("scripts");
        let mut scripts = Scripts::new(clock, account);
        scripts.set_memory_max(memory_bytes);
        Self(scripts)
    }

    /// The reply of a script that is ended after `time`.
    ///
    /// # Errors
    /// Its error, or that of the compiler.
    pub fn run(&mut self, code: &[u8], args: &[&[u8]], time: Duration) -> Result<Vec<u8>, String> {
        let sha = self.0.load(code)?;
        let call = self.0.find(&sha).map(|script| script.call.clone());
        let call = call.ok_or("it was not kept")?;
        let engine = self.0.engine()?;
        let until = self.0.now().saturating_add(time);
        let told = |error: mlua::Error| error.to_string();
        engine.set_loading(true, Some(until)).map_err(told)?;
        let words = args.iter().map(|word| engine.lua.create_string(word));
        let words = words.collect::<mlua::Result<Vec<_>>>().map_err(told)?;
        let words = engine.lua.create_sequence_from(words).map_err(told)?;
        let lists = [mlua::Value::Nil, mlua::Value::Table(words)];
        engine.set_arguments(lists).map_err(told)?;
        let nothing = [mlua::Value::Nil, mlua::Value::Nil];
        match engine.call(&call, nothing).map_err(told)? {
            Ok(value) => {
                let mut reply = ReplyWriter::new(Protocol::Resp3);
                reply::write(&mut reply, &value, Protocol::Resp3).map_err(told)?;
                Ok(reply.take())
            }
            Err(error) => Err(format!("{error:?}")),
        }
    }
}

impl fmt::Debug for ScriptState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScriptState").field(&self.0).finish()
    }
}
