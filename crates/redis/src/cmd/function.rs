//! FUNCTION: libraries of functions, which the store keeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use drumlin_redis_store::{Failure, Outcome};

use super::script::NOT_BUSY;
use crate::call::Call;
use crate::command::{Command, Flags, NO_KEYS};
use crate::glob;
use crate::script::dump;
use crate::script::library::{Libraries, Library};

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "function",
    -2,
    Flags::FAMILY_WRITES,
    NO_KEYS,
    function,
)];

fn error(text: String) -> Failure {
    Failure::because(format!("ERR {text}"))
}

/// The error of a subcommand with more arguments than it takes.
fn too_many(call: &Call<'_, '_>) -> Failure {
    let name = String::from_utf8_lossy(call.arg(1)).into_owned();
    error(format!(
        "unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP."
    ))
}

fn function(call: &mut Call<'_, '_>) -> Outcome<()> {
    match () {
        () if call.is(1, "load") => load(call),
        () if call.is(1, "delete") => {
            let name = call.arg(2);
            let mut libraries = Libraries::clone(&call.server()?.scripts.libraries);
            if !libraries.remove(name) {
                return Err(Failure::refused("ERR Library not found"));
            }
            keep(call, libraries)?;
            call.reply.ok();
            Ok(())
        }
        () if call.is(1, "flush") => flush(call),
        () if call.is(1, "list") => list(call),
        () if call.is(1, "dump") => {
            let payload = dump::dump(&call.server()?.scripts.libraries);
            call.reply.bulk(&payload);
            Ok(())
        }
        () if call.is(1, "restore") => restore(call),
        () if call.is(1, "stats") => {
            let libraries = Arc::clone(&call.server()?.scripts.libraries);
            call.reply.map(2);
            call.reply.bulk(b"running_script");
            call.reply.null();
            libraries.write_engines(call.reply);
            Ok(())
        }
        () if call.is(1, "kill") => Err(NOT_BUSY),
        () => super::reply_help(call, HELP),
    }
}

/// Takes `libraries` for the present ones, in memory and in the round's changes.
fn keep(call: &mut Call<'_, '_>, libraries: Libraries) -> Outcome<()> {
    let before = Arc::clone(&call.server()?.scripts.libraries);
    let old: BTreeSet<&[u8]> = before
        .all()
        .map(|library| library.name.as_slice())
        .collect();
    for library in libraries.all() {
        call.keys.set_library(&library.name, Some(&library.code));
    }
    for name in old {
        if !libraries.has(name) {
            call.keys.set_library(name, None);
        }
    }
    call.server()?.scripts.libraries = Arc::new(libraries);
    Ok(())
}

fn load(call: &mut Call<'_, '_>) -> Outcome<()> {
    let last = call.len() - 1;
    for at in 2..last {
        if !call.is(at, "replace") {
            let option = String::from_utf8_lossy(call.arg(at)).into_owned();
            return Err(error(format!("Unknown option given: {option}")));
        }
    }
    let code = call.arg(last);
    let scripts = &mut call.server()?.scripts;
    let mut libraries = Libraries::clone(&scripts.libraries);
    let name = scripts.load_library(code, &mut libraries, last > 2, false);
    let name = name.map_err(error)?;
    keep(call, libraries)?;
    call.reply.bulk(&name);
    Ok(())
}

fn flush(call: &mut Call<'_, '_>) -> Outcome<()> {
    let is_mode = call.is(2, "sync") || call.is(2, "async");
    if call.len() > 3 {
        return Err(too_many(call));
    }
    if call.len() == 3 && !is_mode {
        let text = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option";
        return Err(Failure::refused(text));
    }
    keep(call, Libraries::default())?;
    call.reply.ok();
    Ok(())
}

fn restore(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.len() > 4 {
        return Err(too_many(call));
    }
    let (flushes, replaces) = (call.is(3, "flush"), call.is(3, "replace"));
    if call.len() == 4 && !flushes && !replaces && !call.is(3, "append") {
        return Err(Failure::refused(
            "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
        ));
    }
    let codes = dump::restore(call.arg(2)).map_err(error)?;
    let scripts = &mut call.server()?.scripts;
    let mut restored = Libraries::default();
    for code in &codes {
        let loaded = scripts.load_library(code, &mut restored, false, true);
        loaded.map_err(error)?;
    }
    let mut libraries = match flushes {
        true => Libraries::default(),
        false => Libraries::clone(&scripts.libraries),
    };
    libraries.join(&restored, replaces).map_err(error)?;
    keep(call, libraries)?;
    call.reply.ok();
    Ok(())
}

fn list(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (mut pattern, mut with_code) = (None, false);
    let mut at = 2;
    while at < call.len() {
        if !with_code && call.is(at, "withcode") {
            with_code = true;
        } else if pattern.is_none() && call.is(at, "libraryname") {
            at += 1;
            if at >= call.len() {
                return Err(Failure::refused("ERR library name argument was not given"));
            }
            pattern = Some(call.arg(at).to_ascii_lowercase());
        } else {
            let word = String::from_utf8_lossy(call.arg(at)).into_owned();
            return Err(error(format!("Unknown argument {word}")));
        }
        at += 1;
    }
    let libraries = Arc::clone(&call.server()?.scripts.libraries);
    let fits = |library: &&Library| {
        let name = library.name.to_ascii_lowercase();
        let pattern = pattern.as_ref();
        pattern.is_none_or(|pattern| glob::matches(pattern, &name))
    };
    let listed: Vec<&Library> = libraries.all().filter(fits).collect();
    call.reply.array(listed.len());
    for library in listed {
        reply_library(call, library, with_code);
    }
    Ok(())
}

fn reply_library(call: &mut Call<'_, '_>, library: &Library, with_code: bool) {
    let reply = &mut *call.reply;
    reply.map(3 + usize::from(with_code));
    reply.bulk(b"library_name");
    reply.bulk(&library.name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(&function.name);
        reply.bulk(b"description");
        match &function.description {
            Some(description) => reply.bulk(description),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        let flags = function.flags.names();
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.simple(flag.as_bytes()));
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

const HELP: &[&str] = &[
    "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Create a new library with the given library name and code.",
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries:",
    "    * Library name",
    "    * The engine used to run the Library",
    "    * Library description",
    "    * Functions list",
    "    * Library code (if WITHCODE is given)",
    "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
    "STATS",
    "    Return information about the current function running:",
    "    * Function name",
    "    * Command used to run the function",
    "    * Duration in MS that the function is running",
    "    If no function is running, return nil",
    "    In addition, returns a list of available engines.",
    "KILL",
    "    Kill the current running function.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the libraries.",
    "    * SYNC: Synchronously flush the libraries.",
    "DUMP",
    "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
    "    control how to handle existing libraries (default APPEND):",
    "    * FLUSH: delete all existing libraries.",
    "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
    "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
    "      libraries with the new libraries (notice that even on this option there is a chance of failure",
    "      in case of functions name collision with another library).",
    "HELP",
    "    Prints this help.",
];
