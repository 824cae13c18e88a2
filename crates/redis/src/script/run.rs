//! EVAL, EVALSHA, FCALL: a script is found, run, and answered.

use std::cell::RefCell;

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::{Args, Protocol, ReplyWriter, integer};
use mlua::{Error, Function, Lua, Value};

use super::busy;
use super::flags::ScriptFlags;
use super::link::{Link, Request, STEP};
use super::reply;
use super::running::{Running, Stop};
use super::scripts::Engine;
use super::{api, lua_error};
use crate::ran;
use crate::round::{Cold, Round, Terms};
use crate::session::Session;
use crate::state::ServerState;
use crate::table::Table;

/// What a script is run with.
pub(crate) struct Evaluation<'a> {
    pub(crate) server: &'a mut ServerState,
    pub(crate) table: &'a Table,
    pub(crate) round: &'a mut Round,
    pub(crate) session: &'a mut Session,
    pub(crate) terms: Terms,
    /// The command in lower case.
    pub(crate) command: &'static str,
    pub(crate) args: Args<'a>,
}

/// What became of a script.
#[derive(Debug)]
pub(crate) enum Evaluated {
    /// It is answered; whether it may have written, and whether with an error.
    Answered { wrote: bool, failed: bool },
    /// It is undone, as a command of its needs the disk.
    Cold(Cold),
}

/// A script that was found.
struct Found {
    call: Function,
    flags: ScriptFlags,
    name: String,
}

impl Evaluation<'_> {
    fn is_eval(&self) -> bool {
        self.command.starts_with("eval")
    }

    fn only_reads(&self) -> bool {
        self.command.ends_with("_ro")
    }

    /// Whether a script with these flags may not write.
    fn is_read_only(&self, flags: ScriptFlags) -> Outcome<bool> {
        let is_declared = !flags.has(ScriptFlags::UNDECLARED);
        let writes = !flags.has(ScriptFlags::NO_WRITES);
        if is_declared && writes && self.only_reads() {
            return Err(Failure::refused(
                "ERR Can not execute a script with write flag using *_ro command.",
            ));
        }
        Ok(self.only_reads() || is_declared && !writes)
    }

    /// The number of keys among the arguments.
    fn key_count(&self) -> Outcome<usize> {
        let count = self.args.get(2).and_then(integer);
        let count = count.ok_or(match self.is_eval() {
            true => Failure::refused("ERR value is not an integer or out of range"),
            false => Failure::refused("ERR Bad number of keys provided"),
        })?;
        let most = self.args.len().saturating_sub(3);
        if count > most as i64 {
            let text = "ERR Number of keys can't be greater than number of args";
            return Err(Failure::refused(text));
        }
        let negative = Failure::refused("ERR Number of keys can't be negative");
        usize::try_from(count).map_err(|_| negative)
    }

    fn find(&mut self) -> Outcome<(usize, Found)> {
        let text = self.args.get(1).unwrap_or_default();
        let error = |text: String| Failure::because(format!("ERR {text}"));
        if !self.is_eval() {
            let libraries = &self.server.scripts.libraries;
            let function = libraries.function(text);
            let function = function.ok_or(Failure::refused("ERR Function not found"))?;
            let found = Found {
                call: function.call.clone(),
                flags: function.flags,
                name: String::from_utf8_lossy(&function.name).into_owned(),
            };
            return Ok((self.key_count()?, found));
        }
        let is_sha = self.command.starts_with("evalsha");
        let missing = Failure::refused("NOSCRIPT No matching script. Please use EVAL.");
        let sha = match is_sha {
            true if text.len() != 40 => return Err(missing),
            true => String::from_utf8_lossy(text).to_ascii_lowercase(),
            false => api::sha1_hex(text),
        };
        let keys = self.key_count()?;
        if !is_sha {
            self.server.scripts.load(text).map_err(error)?;
        }
        let script = self.server.scripts.find(&sha).ok_or(missing)?;
        let found = Found {
            call: script.call.clone(),
            flags: script.flags,
            name: sha,
        };
        Ok((keys, found))
    }

    /// Runs the script.
    ///
    /// # Errors
    /// Those that it has before it begins; they are its reply.
    pub(crate) fn run(mut self, reply: &mut ReplyWriter) -> Outcome<Evaluated> {
        let (keys, found) = self.find()?;
        let is_read_only = self.is_read_only(found.flags)?;
        let engine = self.server.scripts.engine();
        let engine = engine.map_err(|text| Failure::because(format!("ERR {text}")))?;
        let is_eval = self.is_eval();
        let mark = self.round.overlay.mark();
        let steps = self.server.replicas.unit.len();
        let (db, protocol) = (self.session.db, self.session.protocol);
        // What is random is the same when the script is run anew.
        let random = (self.server.random.clone(), engine.link.shared.lock().random);
        let started = self.server.scripts.now();
        let is_first_to_write = self.round.overlay.is_empty();
        let running = RefCell::new(Running {
            server: self.server,
            table: self.table,
            round: self.round,
            session: self.session,
            terms: self.terms,
            protocol: Protocol::Resp2,
            is_read_only,
            flags: found.flags,
            is_eval,
            name: &found.name,
            args: self.args,
            wrote: false,
            is_first_to_write,
            started,
            is_busy: false,
            stop: None,
            published: Vec::new(),
            events: None,
        });
        let address = {
            let session = &mut running.borrow_mut().session;
            session.protocol = Protocol::Resp2;
            // Monitors are told that a script sent its commands.
            std::mem::replace(&mut session.address, "lua".into())
        };
        let start = reply.bytes().len();
        let outcome = execute(&engine, &running, &found, self.args, keys, reply);
        let mut script = running.into_inner();
        script.session.db = db;
        script.session.protocol = protocol;
        script.session.address = address;
        let failure = match outcome {
            Ok(failure) => failure,
            Err(error) => {
                reply.buffer_mut().truncate(start);
                let text: String = api::message(&error).chars().take(100).collect();
                let text = format!("ERR Error running script {}, {text}", found.name);
                reply.error(text.as_bytes());
                Some(text)
            }
        };
        let failed = reply.bytes().get(start) == Some(&b'-');
        let stop = script.stop.take();
        if stop.is_some() {
            reply.buffer_mut().truncate(start);
            script.round.overlay.undo(mark);
            script.server.replicas.unit.truncate(steps);
        }
        match stop {
            Some(Stop::Cold(cold)) => {
                let (of_server, of_scripts) = random;
                if !drumlin_base::bug!("redis-undone-script-draws-on") {
                    script.server.random = of_server;
                    engine.link.shared.lock().random = of_scripts;
                }
                return Ok(Evaluated::Cold(cold));
            }
            Some(Stop::Killed | Stop::ShutDown) => write_killed(&engine, reply, &found.name),
            None => publish(&mut script),
        }
        if let Some(text) = failure {
            ran::error(script.server, &text);
        }
        Ok(Evaluated::Answered {
            wrote: script.wrote,
            failed,
        })
    }
}

/// Sends what the script published.
fn publish(script: &mut Running<'_>) {
    for (channel, message) in std::mem::take(&mut script.published) {
        let (pubsub, clients) = (&script.server.pubsub, &mut script.server.clients);
        pubsub.publish(&channel, &message, clients);
    }
}

fn write_killed(engine: &Engine, reply: &mut ReplyWriter, name: &str) {
    let place = engine.link.shared.lock().ended_at.take();
    let (source, line) = place.unwrap_or_default();
    let text = format!(
        "ERR Script killed by user with SCRIPT KILL... script: {name}, on {source}:{line}."
    );
    reply.error(text.as_bytes());
}

/// Runs the function and writes its value, or its error; the text of an error that is not counted yet.
fn execute(
    engine: &Engine,
    running: &RefCell<Running<'_>>,
    found: &Found,
    args: Args<'_>,
    keys: usize,
    reply: &mut ReplyWriter,
) -> mlua::Result<Option<String>> {
    let lua = &engine.lua;
    engine.link.ending.set(false);
    engine.link.shared.lock().ended_at = None;
    let list = |from: usize, count: usize| -> mlua::Result<Value> {
        let words = args.from(from);
        let table = lua.create_table_with_capacity(count, 0)?;
        for (at, word) in words.iter().take(count).enumerate() {
            table.raw_set(at + 1, lua.create_string(word)?)?;
        }
        Ok(Value::Table(table))
    };
    let values = args.len().saturating_sub(3 + keys);
    let lists = [list(3, keys)?, list(3 + keys, values)?];
    let is_eval = running.borrow().is_eval;
    let [for_globals, for_call] = match is_eval {
        true => [lists, [Value::Nil, Value::Nil]],
        false => [[Value::Nil, Value::Nil], lists],
    };
    engine.set_arguments(for_globals)?;
    let outcome = lua.scope(|scope| {
        let step = scope.create_function(|lua, ()| step(lua, &engine.link, running))?;
        lua.set_named_registry_value(STEP, step)?;
        engine.call(&found.call, for_call)
    });
    lua.unset_named_registry_value(STEP)?;
    engine.set_arguments([Value::Nil, Value::Nil])?;
    if running.borrow().stop.is_some() {
        return Ok(None);
    }
    match outcome? {
        Ok(value) => {
            let protocol = running.borrow().protocol;
            reply::write(reply, &value, protocol)?;
            uncounted(&value)
        }
        Err(error) => {
            let failure = uncounted(&error)?;
            write_error(lua, reply, error, &found.name)?;
            Ok(failure)
        }
    }
}

/// The text of a value that is an error, unless it was counted with the command that it came from.
fn uncounted(value: &Value) -> mlua::Result<Option<String>> {
    let Value::Table(table) = value else {
        return Ok(None);
    };
    let is_counted: Value = table.raw_get("ignore_error_stats_update")?;
    match table.raw_get("err")? {
        Value::String(text) if is_counted != Value::Boolean(true) => {
            Ok(Some(String::from_utf8_lossy(&text.as_bytes()).into_owned()))
        }
        _ => Ok(None),
    }
}

fn write_error(lua: &Lua, reply: &mut ReplyWriter, error: Value, name: &str) -> mlua::Result<()> {
    let Value::Table(table) = error else {
        let text = lua.coerce_string(error)?;
        let text = match &text {
            Some(text) => text.as_bytes().to_vec(),
            None => b"execution failure".to_vec(),
        };
        let text = text.get(..100).unwrap_or(&text);
        let text = String::from_utf8_lossy(text).into_owned();
        reply.error(format!("ERR Error running script {name}, {text}").as_bytes());
        return Ok(());
    };
    let field = |field: &str| -> mlua::Result<Option<Vec<u8>>> {
        let text = lua.coerce_string(table.get(field)?)?;
        Ok(text.map(|text| text.as_bytes().to_vec()))
    };
    let mut text = field("err")?.unwrap_or_default();
    if let (Some(source), Some(line)) = (field("source")?, field("line")?) {
        text.extend(format!(" script: {name}, on ").bytes());
        text.extend(source);
        text.push(b':');
        text.extend(line);
        text.push(b'.');
    }
    reply.error(&text);
    Ok(())
}

/// Carries out what a function asked for: the answer, and whether it is an error.
fn step(lua: &Lua, link: &Link, running: &RefCell<Running<'_>>) -> mlua::Result<(bool, Value)> {
    let request = link.shared.lock().request.take();
    let mut script = running.borrow_mut();
    if script.stop.is_some() {
        return Err(Error::runtime("the script was ended"));
    }
    let answer = match request {
        Some(Request::Call(args)) => match script.call(&args) {
            Ok(reply) if script.stop.is_none() => reply::to_lua(lua, &reply)?,
            Ok(_) => (true, Value::Nil),
            Err(text) => {
                let table = lua_error::error_table(lua, text.as_bytes())?;
                table.raw_set("ignore_error_stats_update", true)?;
                (true, Value::Table(table))
            }
        },
        Some(Request::MayCall(args)) => match script.may_call(&args) {
            Some(may) => (false, Value::Boolean(may)),
            None => (true, Value::Nil),
        },
        Some(Request::SetProtocol(protocol)) => {
            script.protocol = protocol;
            script.session.protocol = protocol;
            (false, Value::Nil)
        }
        None => (false, Value::Nil),
        Some(Request::Tick) => {
            if script.tick() {
                busy::serve(&mut script);
            }
            (false, Value::Nil)
        }
    };
    if script.stop.is_some() {
        link.ending.set(true);
        if !matches!(script.stop, Some(Stop::Cold(_))) {
            return Ok((true, Value::Nil));
        }
        return Err(Error::runtime("the script was ended"));
    }
    Ok(answer)
}
