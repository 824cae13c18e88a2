//! The Lua state of a server, the scripts that it knows, and its libraries.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use drumlin::Account;
use drumlin_fs::Clock;
use drumlin_resp::Args;
use mlua::{Error, Function, HookTriggers, Lua, LuaOptions, Result, StdLib, Table, Value, VmState};

use super::flags::{ScriptFlags, of_script};
use super::library::Libraries;
use super::limits::{MEMORY_BYTES_MAX, MEMORY_SHARE_HIGH, SMALL_STATE_BYTES, TICK_INSTRUCTIONS};
use super::link::{Link, Request};
use super::lua_error::{SANDBOX, caught};
use super::{api, bits, json, layout, msgpack};

const SOURCE: &str = include_str!("sandbox.lua");

/// A script of EVAL.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) call: Function,
    pub(crate) flags: ScriptFlags,
    bytes: usize,
}

/// The Lua state, with what is called in it.
pub(crate) struct Engine {
    pub(crate) lua: Lua,
    pub(crate) link: Link,
    handler: Function,
    script_env: Table,
    library_env: Table,
    run: Function,
    tidy: Function,
    arguments: Function,
    set_loading: Function,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({} bytes)", self.lua.used_memory())
    }
}

impl Engine {
    fn new(clock: Arc<dyn Clock>, account: Arc<Account>, memory_max: usize) -> Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let link = Link::default();
        let host = api::host(&lua, &link)?;
        host.raw_set("cjson", json::library(&lua)?)?;
        host.raw_set("cmsgpack", msgpack::library(&lua)?)?;
        host.raw_set("struct", layout::library(&lua)?)?;
        host.raw_set("bit", bits::library(&lua)?)?;
        let made: Table = lua.load(SOURCE).set_name(SANDBOX).call(host)?;
        let engine = Self {
            handler: api::handler(&lua, &link)?,
            script_env: made.raw_get("script_env")?,
            library_env: made.raw_get("library_env")?,
            run: made.raw_get("run")?,
            tidy: made.raw_get("tidy")?,
            arguments: made.raw_get("arguments")?,
            set_loading: made.raw_get("loading")?,
            lua,
            link,
        };
        engine.watch(clock, account)?;
        engine.lua.set_memory_limit(memory_max)?;
        Ok(engine)
    }

    /// Has long scripts looked at from time to time, whichever coroutine they are in.
    fn watch(&self, clock: Arc<dyn Clock>, account: Arc<Account>) -> Result<()> {
        let link = self.link.clone();
        let triggers = HookTriggers::new().every_nth_instruction(TICK_INSTRUCTIONS);
        self.lua.set_global_hook(triggers, move |lua, debug| {
            // What a script takes is not left until its end to be counted.
            account.set(lua.used_memory());
            let load_until = link.shared.lock().load_until;
            if load_until.is_some_and(|until| clock.monotonic() > until) {
                link.ending.set(true);
            } else if load_until.is_none() {
                link.ask(lua, Request::Tick)?;
            }
            if link.ending.is_set() {
                let source = debug.source().source.map(|name| name.into_owned());
                let line = debug.current_line().map_or(-1, |line| line as i64);
                let mut shared = link.shared.lock();
                shared
                    .ended_at
                    .get_or_insert((source.unwrap_or_default(), line));
                return Err(Error::runtime("the script was ended"));
            }
            Ok(VmState::Continue)
        })
    }

    /// Compiles a script.
    ///
    /// # Errors
    /// Of the compiler.
    fn compile(&self, code: &[u8], name: &str, env: &Table) -> Result<Function> {
        let chunk = self.lua.load(code).set_name(name);
        chunk
            .set_mode(mlua::chunk::ChunkMode::Text)
            .set_environment(env.clone())
            .into_function()
    }

    /// Compiles a library.
    ///
    /// # Errors
    /// Of the compiler.
    pub(crate) fn compile_library(&self, code: &[u8]) -> Result<Function> {
        self.compile(code, "@user_function", &self.library_env)
    }

    /// Calls a function: its first value, or the error that it raised.
    ///
    /// # Errors
    /// When memory is out, and when the script was ended.
    pub(crate) fn call(
        &self,
        call: &Function,
        args: [Value; 2],
    ) -> Result<std::result::Result<Value, Value>> {
        let [keys, values] = args;
        let args = (call, &self.handler, keys, values);
        let (done, value): (bool, Value) = self.run.call(args)?;
        self.tidy.call::<()>(())?;
        Ok(match done {
            true => Ok(value),
            // An error that the handler never saw, such as one of memory, may still be a mark.
            false => Err(caught(&self.lua, value, &self.link.ending)?),
        })
    }

    /// Sets the globals `KEYS` and `ARGV`.
    ///
    /// # Errors
    /// When memory is out.
    pub(crate) fn set_arguments(&self, args: [Value; 2]) -> Result<()> {
        let [keys, values] = args;
        self.arguments.call((keys, values))
    }

    /// Has libraries see what they see while they are loaded, or what they see later.
    ///
    /// # Errors
    /// When memory is out.
    pub(crate) fn set_loading(&self, is_loading: bool, until: Option<Duration>) -> Result<()> {
        let mut shared = self.link.shared.lock();
        shared.load_until = until;
        shared.ended_at = None;
        drop(shared);
        self.link.ending.set(false);
        self.set_loading.call(is_loading)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Scripts {
    clock: Arc<dyn Clock>,
    /// Made with the first script.
    engine: Option<Arc<Engine>>,
    by_sha: HashMap<String, Script>,
    pub(crate) libraries: Arc<Libraries>,
    account: Arc<Account>,
    memory_max: usize,
    /// Whether scripts are denied commands that are not for them.
    pub(crate) denies: bool,
}

impl Scripts {
    /// Without scripts; the memory of their state is charged to `account`.
    pub(crate) fn new(clock: Arc<dyn Clock>, account: Arc<Account>) -> Self {
        Self {
            clock,
            engine: None,
            by_sha: HashMap::new(),
            libraries: Arc::default(),
            account,
            memory_max: MEMORY_BYTES_MAX,
            denies: true,
        }
    }

    /// Bounds the memory of the Lua state. One that has more already stays, and gets no more.
    pub(crate) fn set_memory_max(&mut self, bytes: usize) {
        self.memory_max = bytes.min(MEMORY_BYTES_MAX);
        if let Some(engine) = &self.engine {
            let set = engine.lua.set_memory_limit(self.memory_max);
            set.expect("the allocator of the state can be bounded, as it was at its start");
        }
    }

    /// Takes what scripts have logged, with their levels, and how many lines more they would have.
    pub(crate) fn take_said(&self) -> (Vec<(usize, String)>, u64) {
        let Some(engine) = &self.engine else {
            return (Vec::new(), 0);
        };
        let mut shared = engine.link.shared.lock();
        let unsaid = std::mem::take(&mut shared.unsaid);
        (std::mem::take(&mut shared.said), unsaid)
    }

    /// The time of scripts, by the monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// The Lua state.
    ///
    /// # Errors
    /// The error's text.
    pub(crate) fn engine(&mut self) -> std::result::Result<Arc<Engine>, String> {
        if let Some(engine) = &self.engine {
            return Ok(Arc::clone(engine));
        }
        let engine = Engine::new(
            Arc::clone(&self.clock),
            Arc::clone(&self.account),
            self.memory_max,
        );
        let engine = Arc::new(engine.map_err(|error| error.to_string())?);
        self.engine = Some(Arc::clone(&engine));
        Ok(engine)
    }

    /// The script with this SHA-1, in lower case.
    pub(crate) fn find(&self, sha: &str) -> Option<&Script> {
        self.by_sha.get(sha)
    }

    /// What the script that a command calls declares of itself; `None` where it declares nothing, or is not known.
    pub(crate) fn declared(&self, command: &str, args: Args<'_>) -> Option<ScriptFlags> {
        let text = args.get(1).unwrap_or_default();
        let flags = match command {
            "fcall" | "fcall_ro" => self.libraries.function(text)?.flags,
            "eval" | "eval_ro" => of_script(text).ok()?.0,
            _ => {
                let sha = String::from_utf8_lossy(text).to_ascii_lowercase();
                self.find(&sha)?.flags
            }
        };
        (!flags.has(ScriptFlags::UNDECLARED)).then_some(flags)
    }

    /// Compiles a script, unless it is known; its SHA-1.
    ///
    /// # Errors
    /// The error's text.
    pub(crate) fn load(&mut self, body: &[u8]) -> std::result::Result<String, String> {
        let sha = api::sha1_hex(body);
        if self.by_sha.contains_key(&sha) {
            return Ok(sha);
        }
        let (flags, code_at) = of_script(body)?;
        let engine = self.engine()?;
        self.make_room(&engine);
        let code = body.get(code_at..).unwrap_or_default();
        let call = engine.compile(code, "@user_script", &engine.script_env);
        let call = call.map_err(|error| {
            let text = api::message(&error);
            format!("Error compiling script (new function): {text}")
        })?;
        let bytes = body.len();
        self.by_sha
            .insert(sha.clone(), Script { call, flags, bytes });
        Ok(sha)
    }

    /// Drops the scripts when they, or what they left behind, take much of the memory there is.
    fn make_room(&mut self, engine: &Engine) {
        let high = self.memory_max / MEMORY_SHARE_HIGH;
        if engine.lua.used_memory() <= high {
            return;
        }
        // A collection that fails leaves the memory as it is, and the script ends for want of it.
        drop(engine.lua.gc_collect());
        if engine.lua.used_memory() > high {
            self.by_sha.clear();
            drop(engine.lua.gc_collect());
        }
    }

    /// Forgets all scripts.
    pub(crate) fn flush(&mut self) {
        self.by_sha.clear();
        if let Some(engine) = &self.engine {
            drop(engine.lua.gc_collect());
        }
    }

    /// How many scripts are known.
    pub(crate) fn len(&self) -> usize {
        self.by_sha.len()
    }

    /// Bytes of the scripts' texts.
    pub(crate) fn script_bytes(&self) -> usize {
        let all = self.by_sha.iter();
        all.map(|(sha, script)| sha.len() + script.bytes).sum()
    }

    /// Frees what scripts left behind, if the state is small: then what is told of its memory is in use.
    pub(crate) fn tidy(&self) {
        if let Some(engine) = &self.engine
            && engine.lua.used_memory() <= SMALL_STATE_BYTES
        {
            // Without it the state is as good, and larger.
            drop(engine.lua.gc_collect());
        }
    }

    /// Bytes of the Lua state.
    pub(crate) fn lua_bytes(&self) -> usize {
        self.engine.as_ref().map_or(0, |it| it.lua.used_memory())
    }
}
